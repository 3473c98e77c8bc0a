"""The charts of the evaluate page: a file a family, a record a chart.  A new chart is one record in a family's CHARTS."""
