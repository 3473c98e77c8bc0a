"""The targets of `core train`, a module each; `options` and `runs` hold what several of them share."""
