"""The price book."""

from memoryhub.web.report import report

prices = set_price = report
