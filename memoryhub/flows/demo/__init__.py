"""The demo: two weeks of a small team's hub, in a workspace of its own, ending now.

The story is data (fixtures/demo): what three agents remember, what they talked about, which tools they called. `load_demo`
plays it through the same services that agents use, each step at its own moment, so that every page shows what it would
show a team. `remove_demo` takes every row of it away again.

content   the story as it is read from the files                     pure
stage     the workspace, its cast, and the moments
memories  conversations  requests  background  tools  errands        one act each
load      all acts in their order                                    removal   every row of a workspace, gone
"""
