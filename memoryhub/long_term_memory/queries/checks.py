"""What must always hold of memories, asked of the rows themselves."""

from django.db.models import Exists, OuterRef

from memoryhub.long_term_memory.domain.duplicates import content_sha256
from memoryhub.long_term_memory.models import Memory, MemoryState, SearchDocument
from memoryhub.long_term_memory.search.documents import document_key
from memoryhub.workspaces.models import Workspace


def list_index_gaps(workspace: Workspace) -> list[str]:
    """Memories that recall could return but search can't find, and documents without a memory."""
    alive = Memory.objects.filter(workspace=workspace, state__in=[MemoryState.ACTIVE, MemoryState.FADING])
    own_key = OuterRef("scope_id") * document_key(1, 0) + OuterRef("pk")
    unfound = alive.filter(~Exists(SearchDocument.objects.filter(key=own_key)))
    its_memory = Memory.objects.filter(pk=OuterRef("key") % document_key(1, 0))
    stray = SearchDocument.objects.filter(~Exists(its_memory), workspace=workspace)
    return [
        *(f"{public_id} has no search document" for public_id in unfound.values_list("public_id", flat=True)),
        *(f"search document {key} has no memory" for key in stray.values_list("key", flat=True)),
    ]


def list_damaged_contents(workspace: Workspace) -> list[str]:
    """Memories whose text no longer has its hash."""
    rows = Memory.objects.filter(workspace=workspace)
    facts = rows.values_list("public_id", "content", "content_sha256").iterator(chunk_size=1000)
    return [f"{public_id} is not what its hash says" for public_id, text, sha in facts if content_sha256(text) != sha]
