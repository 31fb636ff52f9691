"""The room's writes, one file per noun: usage, price_book, rollups, transcript_files."""
