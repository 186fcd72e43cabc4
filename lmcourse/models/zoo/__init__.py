"""Published models by name: `find_model("llama-3-8b").config`.

Every number is from the source that its entry names; the parameter count proves most of them. What is not published is
left out, and the entry says so. Mixtures of experts are not here, except for the dense part of Llama 4.
"""

from lmcourse.models.zoo.entry import Entry
from lmcourse.models.zoo.find import all_models, find_model
from lmcourse.models.zoo.survey import SurveyRow, survey

__all__ = ["Entry", "SurveyRow", "all_models", "find_model", "survey"]
