"""Who is calling, and what they may touch.

``users`` is the word, ``tokens`` turns a bearer token into a user, ``policy`` decides. Knows neither HTTP nor SQL.
"""
