"""Forms of the pages. `HubForm` gives Django's fields the classes and aria attributes that partials/_field.html expects."""

from typing import Any

from django import forms
from django.forms.boundfield import BoundField
from django.utils.functional import cached_property
from django.utils.translation import gettext_lazy as _


class HubBoundField(BoundField):
    """A bound field that tells the template what kind of control it is."""

    @cached_property
    def is_checkbox(self) -> bool:
        return isinstance(self.field.widget, forms.CheckboxInput)

    @cached_property
    def is_choices(self) -> bool:
        return isinstance(self.field.widget, forms.CheckboxSelectMultiple | forms.RadioSelect)

    @cached_property
    def is_select(self) -> bool:
        return isinstance(self.field.widget, forms.Select) and not self.is_choices

    optional_mark = _("(optional)")


class HubForm(forms.Form):
    """A form in the product's looks."""

    bound_field_class = HubBoundField

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for field in self.fields.values():
            widget = field.widget
            if isinstance(
                widget,
                forms.CheckboxInput
                | forms.CheckboxSelectMultiple
                | forms.RadioSelect
                | forms.Select
                | forms.HiddenInput,
            ):
                continue
            widget.attrs.setdefault("class", "textarea" if isinstance(widget, forms.Textarea) else "input")

    def lock(self) -> None:
        """Show the values to somebody who may not change them."""
        for field in self.fields.values():
            field.disabled = True
