"""What learners get back: `recorded` finds what is graded and makes nbgrader's pages, `messages` puts each into a
message, `addresses` knows where to, `sending` writes files or talks to a mail server.
"""
