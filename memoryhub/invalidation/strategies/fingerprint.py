"""When it fits: results that are made of files and folders: read_file, list_directory, grep over a tree, a build.
What it costs: one stat per file at each look-up (about 2 microseconds), a hash where the file has just changed.
What it cannot see: files that the result depends on and nobody named; a file on a machine that nobody looks at.
"""

from memoryhub.invalidation.domain.dependency import Match, compare_all
from memoryhub.invalidation.domain.verdict import Evidence, Snapshot, State, Verdict


class FingerprintStrategy:
    name = "fingerprint"

    def judge(self, snapshot: Snapshot, evidence: Evidence) -> Verdict:
        """Fresh when every file and folder is shown as it was; unproven where one is not shown or says too little."""
        match = compare_all(snapshot.files, evidence.shown)
        if match is Match.DIFFERENT:
            return Verdict(State.STALE, self.name)
        if match is Match.UNPROVEN or not snapshot.files:
            return Verdict(State.UNPROVEN, self.name)
        return Verdict(State.FRESH, self.name, verified_by=match.value)
