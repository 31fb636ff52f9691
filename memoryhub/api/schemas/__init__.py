"""In and Out shapes of the API, one file per noun. In shapes refuse unknown fields."""
