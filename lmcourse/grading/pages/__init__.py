"""What a page may show of a graded notebook: no script (`display`, `html`), and nothing of hidden tests (`hide`)."""
