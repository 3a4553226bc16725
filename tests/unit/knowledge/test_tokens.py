import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from superbizagent.adapters.knowledge.tokens import compound_terms, document_terms, query_terms, translated_terms

TERM = re.compile(r"[a-z0-9]{4,80}")


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("kubepodcrashlooping", "KubePodCrashLooping"),
        ("crash loop", "KubePodCrashLooping"),
        ("crashloop", "KubePodCrashLooping"),
        ("API", "KubeAPIDown"),
        ("PVC", "PVCs"),
        ("wal", "etcd_disk_wal"),
        ("etcd-disk-wal", "etcd_disk_wal"),
        ("node3", "node3"),
        ("node", "node3"),
        ("10ms", "less than 10ms"),
        ("5m", "rate(x[5m])"),
        ("10.0.3.7", "at 10.0.3.7:443"),
        ("restart", "it restarted; restarting; restarts"),
        ("retries", "retry"),
        ("expired", "expiration"),
        ("replication", "replicated"),
        ("failing", "failure"),
        ("cache", "caching"),
        ("k8s", "Kubernetes"),
        ("certs", "certificate"),
        ("persistent volume", "PVCs"),
        ("horizontal pod autoscaler", "KubeHpaMaxedOut"),
        ("stateful sets", "the sts"),
        ("strasse", "Straße"),
        ("cafe", "Café"),
        ("UBER", "über"),
        ("ｆｕｌｌ", "full"),
        ("owner", "the owner’s"),
        ("超时", "支付网关超时"),
        ("時", "時間"),
        ("데이터", "데이터베이스"),
        ("ฐานข้อมูล", "ตรวจสอบฐานข้อมูล"),
        ("MySQL超时", "超时 MySQL"),
        ("𠮷", "𠮷野家"),
    ],
)
def test_every_term_of_the_query_is_in_the_text(query: str, text: str) -> None:
    terms = query_terms(query)
    assert terms
    assert set(terms) <= set(document_terms(text))


@pytest.mark.parametrize("query", ["", "how do I", "What's the", "don't isn't we've", "?!", "🙂 ✓", "\ud83d"])
def test_stop_words_and_punctuation_are_not_looked_for(query: str) -> None:
    assert query_terms(query) == []


def test_neighbouring_words_are_looked_for_as_one_too() -> None:
    assert set(compound_terms("the file system is full")) & set(document_terms("filesystem"))
    assert set(compound_terms("node is not ready")) & set(document_terms("KubeNodeNotReady"))


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("磁盘满了怎么办", "disk full"),
        ("MySQL连接池耗尽", "exhausted connection pools"),
        # The longest term, not the one within it.
        ("重新加载", "reload"),
        ("副 本", ""),
        ("disk", ""),
    ],
)
def test_terms_in_chinese_are_looked_for_in_english_too(query: str, text: str) -> None:
    assert set(translated_terms(query)) == set(query_terms(text))


@pytest.mark.spec("STORE-4")
@given(st.text(max_size=200))
def test_a_term_is_a_plain_word_for_every_engine(text: str) -> None:
    for term in (*document_terms(text), *query_terms(text), *compound_terms(text), *translated_terms(text)):
        assert TERM.fullmatch(term)


@pytest.mark.spec("STORE-4")
@given(st.text(alphabet="abcABC019_-.'超时ガアñÉß한 ", min_size=1, max_size=40))
def test_a_text_has_the_terms_of_any_query_made_of_its_words(text: str) -> None:
    for word in text.split():
        assert set(query_terms(word)) <= set(document_terms(text))
        assert set(query_terms(unicodedata.normalize("NFD", word))) <= set(document_terms(text))
