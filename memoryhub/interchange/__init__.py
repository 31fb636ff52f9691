"""Foreign formats: how memories of other systems come in and how ours go out.

One file per format. Each offers the same two functions:

    read(stream)   binary stream -> MemoryRecord | Problem, in file order, each with its line number
    write(records) MemoryRecord  -> pieces of text, in the format's own shape

A bad line becomes a Problem and never stops the file. What a format says and a memory has no field for is kept in
`MemoryRecord.origin`, so that writing the same format again loses nothing. Everything here is pure: no database, no
clock, no settings. A new format is one file here and one line in `formats.FORMATS`.
"""
