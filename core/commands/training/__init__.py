"""The targets of `core train`, one module each; `options` and `runs` hold what several targets share."""
