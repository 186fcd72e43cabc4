"""What was handed in: the file of each student (`submissions`, `choosing`), opened with care (`opening`) and read as a
notebook of which only what grading uses is left (`reading`, `pictures`); whose it is and when it came
(`handed_in`), and what must not travel on beside it (`beside`).
"""
