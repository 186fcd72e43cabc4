"""The course as a static site: its executed notebooks as pages, with figures that move without a kernel."""
