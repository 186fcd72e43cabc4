from lmcourse.grading.nursery.nursery import Nursery

__all__ = ["Nursery"]
