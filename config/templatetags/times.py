"""Times in templates, as lists show them."""

from datetime import datetime

from django import template
from django.utils.safestring import SafeString

from core.admin import times

register = template.Library()


@register.simple_tag
def relative_time(moment: datetime, css_class: str = "") -> SafeString:
    return times.relative(moment, css_class=css_class)
