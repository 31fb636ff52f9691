"""The addresses of the pages of long-term memory. A memory's id may come from elsewhere and hold any character."""

from django.urls import path, register_converter

from memoryhub.web import memories, memory, memory_actions, memory_bulk, memory_import, new_memory, review, search


class MemoryIdConverter:
    """Any id: imported ones may hold slashes, spaces or line breaks."""

    regex = r"[\s\S]+"

    def to_python(self, value: str) -> str:
        """The id as it stands in the address."""
        return value

    def to_url(self, value: str) -> str:
        """The id as it stands in the row."""
        return value


register_converter(MemoryIdConverter, "memory_id")

urlpatterns = [
    path("memories", memories.memories, name="memories"),
    path("memories/filters/save", memories.save_filter, name="save_memory_filter"),
    path("memories/filters/remove", memories.remove_filter, name="remove_memory_filter"),
    path("memories/new", new_memory.new_memory, name="new_memory"),
    path("memories/import", memory_import.memory_import, name="memory_import"),
    path("memories/import/run", memory_import.run_import, name="run_memory_import"),
    path("memories/bulk", memory_bulk.bulk_memories, name="bulk_memories"),
    path("memories/undo", memory_actions.undo_change, name="undo_memory_change"),
    path("memories/<memory_id:public_id>/curve", memory.curve, name="memory_curve"),
    path("memories/<memory_id:public_id>/edit", memory_actions.edit, name="edit_memory"),
    path("memories/<memory_id:public_id>/act", memory_actions.act, name="act_on_memory"),
    path("memories/<memory_id:public_id>/supersede", memory_actions.supersede, name="supersede_memory"),
    path("memories/<memory_id:public_id>/rate", memory_actions.rate, name="rate_memory"),
    path("memories/<memory_id:public_id>/erase", memory_actions.erase, name="erase_memory"),
    path(
        "memories/<memory_id:public_id>/versions/<int:number>/restore",
        memory_actions.restore_version,
        name="restore_memory_version",
    ),
    path(
        "memories/<memory_id:public_id>/versions/<str:version_id>/redact",
        memory_actions.redact,
        name="redact_memory_version",
    ),
    path("memories/<memory_id:public_id>", memory.memory, name="memory"),
    path("search", search.search, name="search"),
    path("search/weights", search.save_weights, name="save_recall_weights"),
    path("review", review.review, name="review"),
    path("review/<str:public_id>", review.decide, name="decide_review"),
]
