"""Search in Chinese: texts and questions are cut into pairs of characters, so that every phrase is found.

Sphinx's own way needs jieba, which cuts by a dictionary (without a release since 2020), and takes a question whole: a
question of two words is then found nowhere. In Sphinx 9.0 it does not run at all (``ChineseStemmer is not defined``).
"""

from __future__ import annotations

import re
from itertools import pairwise

from sphinx.application import Sphinx
from sphinx.search.en import SearchEnglish

_WORD = re.compile(r"[一-鿿]+|[^\W一-鿿]+")
_SPLIT_QUERY = """
var splitQuery = (query) => {
  // A pair at the border of two words may occur in no page: the others find it.
  const index = Search._index;
  const occurs = (pair) => !index?.terms || pair in index.terms || pair in index.titleterms;
  return (query.match(/[\\u4e00-\\u9fff]+|[^\\s\\u4e00-\\u9fff]+/gu) || []).flatMap((word) =>
    /[\\u4e00-\\u9fff]{2}/.test(word)
      ? Array.from({ length: word.length - 1 }, (_, at) => word.slice(at, at + 2)).filter(occurs)
      : word.split(/[^\\p{Letter}\\p{Number}_]+/gu).filter((term) => term),
  );
};
"""


class SearchPairs(SearchEnglish):
    """Chinese by pairs of characters, everything else as English, whose stemmer the browser gets."""

    lang = "zh"
    js_splitter_code = _SPLIT_QUERY

    def split(self, input: str) -> list[str]:
        """The words of a text; one character between others' words stays as it is."""
        found: list[str] = []
        for word in _WORD.findall(input):
            chinese = len(word) > 1 and "一" <= word[0] <= "鿿"
            found += [first + second for first, second in pairwise(word)] if chinese else [word]
        return found


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.add_search_language(SearchPairs)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
