"""People: open house, roles, passwords, waiting after failures, the log that cannot be changed."""

from __future__ import annotations

from contextlib import ExitStack

import pytest
from annotation_samples import Clock, do, project, take, work
from sqlalchemy import text
from storage_samples import known, prediction

from core.errors import InputError, NotAllowedError, NotFoundError, StorageError
from storage.access import passwords, throttle
from storage.access.people import joined_subject
from storage.records.annotation import SignInError
from storage.store import Store

pytestmark = pytest.mark.usefixtures("quick_hashes")
SECRET = "a long password"


@pytest.fixture
def ada(store: Store) -> None:
    """Ada manages: from here on, people sign in."""
    store.people.add_person("Ada", "Ada", "manager", SECRET)


@pytest.fixture
def bob(store: Store, ada: None) -> None:
    store.people.add_person("Ada", "Bob", "annotator", SECRET)


def waits(store: Store, name: str, address: str = "", password: str = "wrong", times: int = 1) -> list[float]:
    """Seconds that each of these refused attempts was told to wait."""
    seconds = []
    for _ in range(times):
        with pytest.raises(SignInError) as refused:
            store.people.sign_in(name, password, address)
        seconds.append(refused.value.seconds)
        assert seconds[-1] or str(refused.value) == "name or password is wrong"
    return seconds


def test_an_open_house_needs_no_password_until_somebody_has_one(store: Store) -> None:
    assert not store.people.accounts_in_use()
    assert store.people.require("Ada", "manager").role == "manager"
    parts = project(store, 1, by="Ada")
    do(store, parts, "Bob", "x")
    with pytest.raises(InputError, match="manager account"):
        store.people.add_person("Ada", "Bob", "annotator", SECRET)
    store.people.add_person("Ada", "Val", "validator")  # a role, but no way to sign in: still open
    assert not store.people.accounts_in_use()
    assert store.people.require("Bob").role == "manager"
    added = store.people.add_person("Ada", "Ada", "manager", SECRET)
    assert (added.role, added.has_password) == ("manager", True)
    assert store.people.accounts_in_use()
    with pytest.raises(NotAllowedError, match="'Bob'"):
        store.queue.next_item(parts.id, "Bob", "generation")
    assert [(p.name, p.role, p.active) for p in store.people.people("Ada")] == [
        ("Ada", "manager", True),
        ("Bob", "annotator", False),
        ("Val", "validator", True),
    ]


def test_nobody_is_locked_out_by_the_first_way_to_sign_in(store: Store) -> None:
    store.people.add_person("Ada", "Away", "manager")
    store.people.set_active("Ada", "Away", False)
    store.people.add_person("Ada", "Bob", "annotator")
    for call in (
        lambda: store.people.set_password("Ada", "Away", SECRET),
        lambda: store.people.set_subject("Ada", "Away", "https://issuer away"),
        lambda: store.people.set_password("Ada", "Bob", SECRET),
        lambda: store.people.set_subject("Ada", "Bob", "https://issuer bob"),
    ):
        with pytest.raises(InputError, match="manager account"):
            call()
    assert not store.people.accounts_in_use()


def test_what_is_of_others_needs_a_role(store: Store, bob: None) -> None:
    store.people.add_person("Ada", "Val", "validator", SECRET)
    parts = project(store, 2, by="Ada", stages=("generation", "validation"))
    item = do(store, parts, "Bob", "x").item
    for call in (
        lambda: store.people.set_password("Bob", "Ada", SECRET),
        lambda: store.items.progress(parts.id, "Bob", "Val"),
        lambda: store.queue.tasks(parts.id, "Bob"),
        lambda: store.submissions.submissions(parts.id, "Bob"),
        lambda: store.submissions.submission_history(item, "Val", "generation", "Bob"),
        lambda: store.queue.next_item(parts.id, "Bob", "validation"),
        lambda: store.submissions.submit(item, "Eve", "generation", work("x"), seconds=0),
    ):
        with pytest.raises(NotAllowedError):
            call()
    assert store.items.get_item(item, "Bob").references == ()  # not for annotators
    assert len(store.items.get_item(item, "Val").references) == 1
    store.predictions.save_prediction(prediction("Who played part 0?", ["a"], id="q0", system="fid"))
    blind = project(store, 1, by="Ada", name="blind", stages=("judging",), systems=("fid",))
    judged = take(store, blind, "Bob", "judging").item
    assert [p.system for p in store.items.get_item(judged, "Bob").predictions] == [""]
    assert [p.system for p in store.items.get_item(judged, "Val").predictions] == ["fid"]
    assert store.items.progress(parts.id, "Bob", "Bob")["generation"].submitted == 1
    assert len(store.submissions.submissions(parts.id, "Bob", annotator="Bob")) == 1
    assert take(store, parts, "Val", "validation").item == item
    store.people.set_active("Ada", "Bob", False)
    with pytest.raises(NotAllowedError):
        store.queue.next_item(parts.id, "Bob", "generation")


def test_signing_in_tells_nothing_and_waits_longer_and_longer(store: Store, ada: None, clock: Clock) -> None:
    assert store.people.sign_in("Ada", SECRET).name == "Ada"
    free = throttle.PAIR_BUDGET.free
    for name in ("Ada", "Nobody"):
        assert waits(store, name, times=free) == [0.0] * free
        assert waits(store, name, password=SECRET) == [5.0]  # even the right one
        clock.pass_(seconds=5)
        assert waits(store, name, times=2) == [0.0, 10.0]
    clock.pass_(seconds=10)
    assert store.people.sign_in("Ada", SECRET).name == "Ada"
    assert waits(store, "Ada") == [0.0]  # counted from the start again
    failed = store.people.activity("Ada", action="sign-in failed")
    assert all("Nobody" not in str(a.details) and "wrong" not in str(a.details) for a in failed)


def test_a_stranger_locks_nobody_out(store: Store, ada: None, clock: Clock) -> None:
    store.people.sign_in("Ada", SECRET, "192.0.2.1")
    for i in range(80):  # from one address, then from many
        waits(store, "Ada", "198.51.100.1" if i < 20 else f"198.51.100.{i}")
        clock.pass_(seconds=0 if i % 10 else 1)
    assert waits(store, "Ada", "203.0.113.9") > [0.0]  # no address that is not known gets through by now
    assert store.people.sign_in("Ada", SECRET, "192.0.2.1").name == "Ada"
    assert (
        [0.0] < waits(store, "Ada", "203.0.113.9", SECRET) <= [throttle.NAME_BUDGET.longest]
    )  # nor the right password: slowed
    clock.pass_(seconds=throttle.NAME_BUDGET.longest)
    assert store.people.sign_in("Ada", SECRET, "203.0.113.9").name == "Ada"


def test_attempts_are_counted_by_name_and_address(store: Store, ada: None, clock: Clock) -> None:
    free = throttle.PAIR_BUDGET.free
    assert waits(store, "Ada", "192.0.2.1", times=free + 1) == [0.0] * free + [5.0]
    assert waits(store, "Ada", "192.0.2.2") == [0.0]  # another address
    assert waits(store, "Bob", "192.0.2.1") == [0.0]  # another name
    assert waits(store, "ADA", "192.0.2.1") == [5.0]  # case aside
    assert waits(store, "Eve", "2001:db8:1:2::1", times=free) == [0.0] * free
    assert waits(store, "Eve", "2001:db8:1:2:ffff::2") == [5.0]  # one customer's addresses of IPv6 are one
    assert waits(store, "Eve", "2001:db8:1:3::1") == [0.0]


def test_one_address_cannot_try_many_names(store: Store, ada: None, clock: Clock) -> None:
    store.people.sign_in("Ada", SECRET, "192.0.2.1")
    seconds = [waits(store, f"name {i}", "192.0.2.1")[0] for i in range(throttle.ADDRESS_BUDGET.free + 1)]
    assert seconds == [0.0] * throttle.ADDRESS_BUDGET.free + [5.0]
    assert store.people.sign_in("Ada", SECRET, "192.0.2.1").name == "Ada"  # who is known there is not sent away
    assert waits(store, "another", "192.0.2.1") > [0.0]  # which gives the others no new attempts


def test_an_address_is_known_for_a_while_and_waits_less(store: Store, ada: None, clock: Clock) -> None:
    store.people.sign_in("Ada", SECRET, "192.0.2.1")
    for _ in range(throttle.KNOWN_PAIR_BUDGET.free + 10):
        clock.pass_(seconds=throttle.KNOWN_PAIR_BUDGET.longest)
        assert waits(store, "Ada", "192.0.2.1") == [0.0]
    assert waits(store, "Ada", "192.0.2.1") == [throttle.KNOWN_PAIR_BUDGET.longest]  # never longer than this
    clock.pass_(days=throttle.KNOWN_FOR.days + 2)
    for i in range(throttle.NAME_BUDGET.free):
        waits(store, "Ada", f"198.51.100.{i}")
    assert waits(store, "Ada", "192.0.2.1", SECRET)  # known no more


def test_few_passwords_are_looked_at_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many as may work are at work: nobody else comes in before one of them has ended."""
    stored = passwords.hashed(SECRET)
    monkeypatch.setattr(passwords, "MAX_WAIT_SECONDS", 0.0)
    with ExitStack() as at_work:
        for _ in range(passwords.MAX_CONCURRENT_HASHES):
            at_work.enter_context(passwords._limited())
        for work in (lambda: passwords.is_right(stored, SECRET), lambda: passwords.hashed(SECRET)):
            with pytest.raises(SignInError, match="try again"):
                work()
    assert passwords.is_right(stored, SECRET)


def test_a_password_changed_while_it_was_looked_at_signs_nobody_in(
    store: Store, bob: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = passwords.is_right

    def meanwhile(stored: str | None, password: str) -> bool:
        monkeypatch.setattr(passwords, "is_right", real)
        store.people.set_active("Ada", "Bob", False)
        return real(stored, password)

    monkeypatch.setattr(passwords, "is_right", meanwhile)
    assert waits(store, "Bob", password=SECRET) == [0.0]


def test_passwords_are_argon2_and_never_shown(store: Store, ada: None) -> None:
    with store.database.reading() as session:
        stored = session.scalar(text("SELECT password FROM account"))
    assert str(stored).startswith("$argon2id$")
    assert SECRET not in repr(store.people.require("Ada")) + repr(store.people.activity("Ada"))
    with pytest.raises(InputError, match="8 to 1024"):
        store.people.set_password("Ada", "Ada", "short", SECRET)
    with pytest.raises(SignInError):
        store.people.set_password("Ada", "Ada", "another password")  # without the old one
    store.people.set_password("Ada", "Ada", "another password", SECRET)
    assert store.people.sign_in("Ada", "another password").name == "Ada"
    store.people.add_person("Ada", "Bob", "annotator", SECRET)
    store.people.set_password("Ada", "Bob", "given by a manager")
    assert store.people.require(store.people.sign_in("Bob", "given by a manager").name).role == "annotator"


def test_there_is_always_a_manager_who_can_sign_in(store: Store, ada: None) -> None:
    store.people.add_person("Ada", "Bob", "manager")  # without a way in
    for call in (
        lambda: store.people.set_role("Ada", "Ada", "annotator"),
        lambda: store.people.set_active("Ada", "Ada", False),
    ):
        with pytest.raises(InputError, match="nobody who manages"):
            call()
    store.people.set_subject("Ada", "Bob", "https://issuer bob")
    store.people.set_role("Bob", "Ada", "annotator")
    with pytest.raises(InputError, match="nobody who manages"):
        store.people.set_subject("Bob", "Bob", None)
    assert store.people.accounts_in_use()


def test_a_subject_signs_in_one_person(store: Store) -> None:
    store.people.add_person("Ada", "Ada", "manager", subject="https://issuer 1")
    assert store.people.sign_in_subject("https://issuer 1").name == "Ada"
    with pytest.raises(SignInError):
        store.people.sign_in_subject("https://issuer 2")
    assert waits(store, "Ada", password="") == [0.0]  # no password is no empty password
    with pytest.raises(InputError, match="another account"):
        store.people.add_person("Ada", "Bob", "annotator", subject="https://issuer 1")
    with pytest.raises(InputError, match="account already"):
        store.people.add_person("Ada", "Ada", "annotator")
    with pytest.raises(NotFoundError, match="no account"):
        store.people.set_role("Ada", "Nobody", "manager")


def test_the_log_is_paged_and_cannot_be_changed(store: Store) -> None:
    parts = project(store, 2, by="Ada")
    item = do(store, parts, "Bob", "x").item
    store.returns.return_item(item, "Bob", "generation", "look again", by="Ada")
    activities = store.people.activity("Ada", project=parts.id)
    assert [(a.person, a.action) for a in activities] == [
        ("Ada", "item returned"),
        ("Bob", "item submitted"),
        ("Bob", "item leased"),
        ("Ada", "items added"),
        ("Ada", "project created"),
    ]
    details = {"stage": "generation", "to": "Bob", "reason": "look again"}
    assert (activities[0].item, activities[0].details) == (item, details)
    pages = [store.people.activity("Ada", limit=2), store.people.activity("Ada", limit=2, before=activities[1].id)]
    assert [a.id for page in pages for a in page] == [a.id for a in activities[:4]]
    assert {a.person for a in store.people.activity("Ada", person="Bob")} == {"Bob"}
    with pytest.raises(InputError, match="unknown action"):
        store.people.activity("Ada", action="nonsense")
    store.people.add_person("Ada", "Ada", "manager", SECRET)
    store.people.add_person("Ada", "Bob", "annotator", SECRET)
    assert {a.person for a in store.people.activity("Bob")} == {"Bob"}  # only their own
    store.projects.save_guidelines("Ada", parts.id, "Read.")
    store.drafts.log_search(item, "Bob", "generation", "who")
    for table in ("activity", "submission", "interaction", "guideline"):
        for statement in (f"UPDATE {table} SET created = created", f"DELETE FROM {table}"):
            with pytest.raises(StorageError, match="never changed or deleted"), store.database.writing() as session:
                session.execute(text(statement))


@pytest.mark.parametrize(
    "subject", ["https://issuer", " sub", "https://issuer ", "https://issuer a b", "https://issuer\t1", "i s\n", "", " "]
)
def test_a_subject_is_an_issuer_and_a_subject(store: Store, ada: None, subject: str) -> None:
    """Else two parts of another cut would read the same."""
    with pytest.raises(InputError, match="ISSUER SUBJECT"):
        store.people.set_subject("Ada", "Ada", subject)
    assert not store.people.require("Ada").has_subject


@pytest.mark.parametrize(
    ("issuer", "subject"), [(None, "1"), ("https://issuer", 5), ("", "1"), ("https://issuer", "1\x00"), ("i", "\ud800")]
)
def test_claims_that_no_account_can_keep_are_refused(issuer: object, subject: object) -> None:
    with pytest.raises(InputError):
        joined_subject(issuer, subject)


def test_an_address_is_not_known_for_longer_than_was_promised(store: Store, ada: None, clock: Clock) -> None:
    """The clock was set back: what says that an address is known lies further ahead than it could."""
    store.people.sign_in("Ada", SECRET, "192.0.2.7")
    clock.pass_(days=-200)
    for seconds in (5.0, 10.0, 20.0, 40.0, 80.0):  # of a known address at most 60
        waits(store, "Ada", "192.0.2.7", times=5 if seconds == 5 else 1)
        assert waits(store, "Ada", "192.0.2.7", SECRET) == [seconds]
        clock.pass_(seconds=seconds + 1)


def test_a_name_that_looks_like_anothers_is_refused_or_the_same(store: Store, ada: None) -> None:
    with pytest.raises(InputError, match="Ada"):
        store.people.add_person("Ada", "\u0410da", "annotator")
    assert store.people.sign_in("A\u202eda\u200b", SECRET).name == "Ada"
    with pytest.raises(InputError, match="has an account"):
        store.people.add_person("Ada", "Ada\u200b", "annotator")
    assert store.people.annotators() == ["Ada"]


def test_names_are_stored_in_one_form(store: Store) -> None:
    assert known(store, "Jose\u0301\u200d").name == "Jos\u00e9"
    assert known(store, "Jos\u00e9").name == "Jos\u00e9"
    parts = project(store, 1, by="Jose\u0301", name="Ro\u0301ma\u200b \u202eone")
    assert parts.name == "R\u00f3ma one"
    assert store.projects.find_project_named("Ro\u0301ma one") == parts
    for other in ("r\u00f3ma one", "R\u00f3m\u0430 one", "R\u00f3ma  one"):
        with pytest.raises(InputError, match="R\u00f3ma one"):
            project(store, 0, by="Jos\u00e9", name=other)
    task = take(store, parts, "Jose\u0301")
    assert store.drafts.save_draft(task.item, "Jos\u00e9", "generation", {"text": "mine"}, 0).version == 1
    assert store.people.annotators() == ["Jos\u00e9"]
