from django.apps import AppConfig


class LongTermMemoryConfig(AppConfig):
    name = "memoryhub.long_term_memory"
    label = "long_term_memory"
    verbose_name = "Long-term memory"
