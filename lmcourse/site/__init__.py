"""The course as a static site: executed notebooks as pages, with figures that are interactive without a kernel."""
