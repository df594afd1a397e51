"""A whole test suite, unchanged: where its tracing and compiling time goes, and which functions are traced twice.

`options` reads what was asked for, `session` records, `strict` and `baseline` judge single tests, `totals` adds up, and
`summary`, `output_json` and `timeline` show it. Nothing in here is loaded unless one of the options is on.
"""
