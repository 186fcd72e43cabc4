"""What a page may show of a graded notebook: no script (`display`, `html`), and no hidden test (`hide_tests`)."""
