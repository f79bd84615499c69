"""Replies are taken apart however they are cut."""

import pytest
from replies import MORE, Error, Replies

WIRE = b"+OK\r\n:-7\r\n$3\r\na\r\n\r\n$-1\r\n*-1\r\n*0\r\n*2\r\n*1\r\n$0\r\n\r\n%1\r\n+k\r\n*2\r\n:1\r\n_\r\n-ERR no\r\n=7\r\ntxt:abc\r\n,1.5\r\n#t\r\n~1\r\n:1\r\n"
SAID = [("+", b"OK"), -7, b"a\r\n", None, ("nil array",), [], [[b""], [(("+", b"k"), [1, None])]], Error("ERR no"), b"abc", (",", b"1.5"), ("#", b"t"), [1]]


@pytest.mark.parametrize("piece", [1, 2, 3, 7, len(WIRE)])
def test_replies_are_the_same_however_they_come(piece):
    replies, said = Replies(), []
    for at in range(0, len(WIRE), piece):
        replies.input += WIRE[at : at + piece]
        while (reply := replies.next()) is not MORE:
            said.append(reply)
    assert said == SAID and not replies.input and not replies.begun
    assert isinstance(said[7], Error)


def test_what_is_no_reply_is_said():
    replies = Replies()
    replies.input += b"hello\r\n"
    with pytest.raises(AssertionError, match="not a reply"):
        replies.next()
