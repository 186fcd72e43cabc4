"""Start JupyterLab with the course: check the machine, put the notebooks there, write the welcome page."""
