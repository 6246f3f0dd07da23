"""How Django writes numbers and dates on the pages."""
