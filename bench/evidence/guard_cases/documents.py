"""Claims that rest on documents: their ids, titles and sentences."""

from collections.abc import Iterator
from dataclasses import replace

from bench.evidence.guard_cases.drafts import Case, Mutant
from bench.evidence.guard_cases.observed import Observed


def document_cases(observed: Observed) -> Iterator[Case]:
    for name, other in (("runbook", "手册"), ("手册", "runbook")):
        for document in observed.by_name[name].documents:
            for language, sentence in (
                ("en", "The document “{}” tells what to do."),
                ("zh", "《{}》给出了处理方法。"),
                ("zh", "文档「{}」说明了处理步骤。"),
            ):
                text = sentence.format(document.title)
                case = Case("document", language, sentence, text, (name,), documents=(document.document_id,))
                yield replace(case, mutants=_broken(case, document.title, observed, other))


def _broken(case: Case, title: str, observed: Observed, other: str):  # type: ignore[no-untyped-def]  # noqa: ANN202
    def mutants() -> Iterator[Mutant]:
        known = case.documents[0]
        strangers = {d.document_id for d in observed.by_name[other].documents}
        strangers -= {d.document_id for d in observed.by_name[case.cites[0]].documents}
        yield Mutant(
            "document: unknown id", replace(case, documents=(known[:-1] + ("0" if known[-1] != "0" else "1"),)), True
        )
        for stranger in sorted(strangers)[:1]:
            yield Mutant("document: of another lookup", replace(case, documents=(stranger,)), True)
        yield Mutant("document: cited from logs", replace(case, cites=("payment errors",)), True)
        changed = title[: len(title) // 2] + "x" + title[len(title) // 2 + 1 :]
        yield Mutant("document: title altered", replace(case, text=case.text.replace(title, changed)), True)

    return mutants
