"""Who is calling, and what they may touch.

``users`` is the word, ``identity`` turns a credential into a user by ``tokens`` (configured) and ``accounts``
(passwords), ``policy`` decides, ``limits`` count. Knows neither HTTP nor SQL.
"""
