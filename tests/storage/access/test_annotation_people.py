"""People: open house, roles, passwords, waiting after failures, the log that cannot be changed."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from annotation_samples import Clock, do, hash_quickly, project, take, work
from sqlalchemy import text
from storage_samples import known, prediction

from core.errors import InputError, NotAllowedError, NotFoundError, StorageError
from storage.access import passwords, throttle
from storage.access.people import joined_subject
from storage.records.annotation import SignInError
from storage.store import Store

SECRET = "a long password"


@pytest.fixture(autouse=True)
def quick_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    hash_quickly(monkeypatch)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def test_an_open_house_needs_no_password_until_somebody_has_one(store: Store) -> None:
    assert not store.people.accounts_in_use()
    assert store.people.require("Ada", "manager").role == "manager"
    made = project(store, 1, by="Ada")
    do(store, made, "Bob", "x")
    with pytest.raises(InputError, match="manager account"):
        store.people.add_person("Ada", "Bob", "annotator", SECRET)
    store.people.add_person("Ada", "Val", "validator")  # a role, but no way to sign in: still open
    assert not store.people.accounts_in_use()
    assert store.people.require("Bob").role == "manager"
    added = store.people.add_person("Ada", "Ada", "manager", SECRET)
    assert (added.role, added.has_password, added.signs_in) == ("manager", True, True)
    assert store.people.accounts_in_use()
    with pytest.raises(NotAllowedError, match="'Bob'"):
        store.queue.next_item(made.id, "Bob", "generation")
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


def test_what_is_of_others_needs_a_role(store: Store) -> None:
    store.people.add_person("Ada", "Ada", "manager", SECRET)
    store.people.add_person("Ada", "Bob", "annotator", SECRET)
    store.people.add_person("Ada", "Val", "validator", SECRET)
    made = project(store, 2, by="Ada", stages=("generation", "validation"))
    item = do(store, made, "Bob", "x").item
    for call in (
        lambda: store.people.set_password("Bob", "Ada", SECRET),
        lambda: store.items.progress(made.id, "Bob", "Val"),
        lambda: store.queue.tasks(made.id, "Bob"),
        lambda: store.submissions.submissions(made.id, "Bob"),
        lambda: store.submissions.submission_history(item, "Val", "generation", "Bob"),
        lambda: store.queue.next_item(made.id, "Bob", "validation"),
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
    assert store.items.progress(made.id, "Bob", "Bob")["generation"].submitted == 1
    assert len(store.submissions.submissions(made.id, "Bob", annotator="Bob")) == 1
    assert take(store, made, "Val", "validation").item == item
    store.people.set_active("Ada", "Bob", False)
    with pytest.raises(NotAllowedError):
        store.queue.next_item(made.id, "Bob", "generation")


def test_signing_in_tells_nothing_and_waits_longer_and_longer(store: Store, clock: Clock) -> None:
    store.people.add_person("Ada", "Ada", "manager", SECRET)
    assert store.people.sign_in("Ada", SECRET).name == "Ada"
    said = set()
    for name in ("Ada", "Nobody"):
        for _ in range(throttle.PAIR.free):
            with pytest.raises(SignInError) as caught:
                store.people.sign_in(name, "wrong")
            said.add(str(caught.value))
            assert caught.value.seconds == 0
        with pytest.raises(SignInError) as caught:
            store.people.sign_in(name, SECRET)  # even the right one
        assert caught.value.seconds == 5
        clock.pass_(seconds=5)
        with pytest.raises(SignInError) as caught:
            store.people.sign_in(name, "wrong")
        assert caught.value.seconds == 0
        with pytest.raises(SignInError) as caught:
            store.people.sign_in(name, "wrong")
        assert caught.value.seconds == 10
    assert said == {"name or password is wrong"}
    clock.pass_(seconds=10)
    assert store.people.sign_in("Ada", SECRET).name == "Ada"
    with pytest.raises(SignInError) as caught:
        store.people.sign_in("Ada", "wrong")
    assert caught.value.seconds == 0  # counted anew
    failed = store.people.activity("Ada", action="sign-in failed")
    assert all("Nobody" not in str(a.details) and "wrong" not in str(a.details) for a in failed)


def wrong(store: Store, name: str, address: str, times: int = 1) -> list[float]:
    """Seconds that each of these wrong attempts was told to wait."""
    found = []
    for _ in range(times):
        with pytest.raises(SignInError) as caught:
            store.people.sign_in(name, "wrong", address)
        found.append(caught.value.seconds)
    return found


def test_a_stranger_locks_nobody_out(store: Store, clock: Clock) -> None:
    store.people.add_person("Ada", "Ada", "manager", SECRET)
    store.people.sign_in("Ada", SECRET, "192.0.2.1")
    for i in range(80):  # from one address, then from many
        wrong(store, "Ada", "198.51.100.1" if i < 20 else f"198.51.100.{i}")
        clock.pass_(seconds=0 if i % 10 else 1)
    assert wrong(store, "Ada", "203.0.113.9")[0] > 0  # no address that is not known gets through by now
    assert store.people.sign_in("Ada", SECRET, "192.0.2.1").name == "Ada"
    with pytest.raises(SignInError) as caught:
        store.people.sign_in("Ada", SECRET, "203.0.113.9")  # nor the right password from one: slowed
    assert 0 < caught.value.seconds <= throttle.NAME.longest
    clock.pass_(seconds=throttle.NAME.longest)
    assert store.people.sign_in("Ada", SECRET, "203.0.113.9").name == "Ada"


def test_attempts_are_counted_by_name_and_address(store: Store, clock: Clock) -> None:
    store.people.add_person("Ada", "Ada", "manager", SECRET)
    free = throttle.PAIR.free
    assert wrong(store, "Ada", "192.0.2.1", free + 1) == [0.0] * free + [5.0]
    assert wrong(store, "Ada", "192.0.2.2") == [0.0]  # another address
    assert wrong(store, "Bob", "192.0.2.1") == [0.0]  # another name
    assert wrong(store, "ADA", "192.0.2.1") == [5.0]  # case aside
    assert wrong(store, "Eve", "2001:db8:1:2::1", free) == [0.0] * free
    assert wrong(store, "Eve", "2001:db8:1:2:ffff::2") == [5.0]  # one customer's addresses of IPv6 are one
    assert wrong(store, "Eve", "2001:db8:1:3::1") == [0.0]


def test_one_address_cannot_try_many_names(store: Store, clock: Clock) -> None:
    store.people.add_person("Ada", "Ada", "manager", SECRET)
    store.people.sign_in("Ada", SECRET, "192.0.2.1")
    said = [wrong(store, f"name {i}", "192.0.2.1")[0] for i in range(throttle.ADDRESS.free + 1)]
    assert said == [0.0] * throttle.ADDRESS.free + [5.0]
    assert store.people.sign_in("Ada", SECRET, "192.0.2.1").name == "Ada"  # who is known there is not sent away
    assert wrong(store, "another", "192.0.2.1")[0] > 0  # which gives the others no new attempts


def test_an_address_is_known_for_a_while_and_waits_less(store: Store, clock: Clock) -> None:
    store.people.add_person("Ada", "Ada", "manager", SECRET)
    store.people.sign_in("Ada", SECRET, "192.0.2.1")
    for _ in range(throttle.KNOWN_PAIR.free + 10):
        clock.pass_(seconds=throttle.KNOWN_PAIR.longest)
        assert wrong(store, "Ada", "192.0.2.1") == [0.0]
    assert wrong(store, "Ada", "192.0.2.1") == [throttle.KNOWN_PAIR.longest]  # never longer than this
    clock.pass_(days=throttle.KNOWN_FOR.days + 2)
    for i in range(throttle.NAME.free):
        wrong(store, "Ada", f"198.51.100.{i}")
    with pytest.raises(SignInError):
        store.people.sign_in("Ada", SECRET, "192.0.2.1")  # known no more


def test_few_passwords_are_looked_at_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many as allowed are at work before the first one may end; nobody else comes in."""
    working, most, lock, full, hasher = 0, 0, threading.Lock(), threading.Event(), passwords._hasher()

    class Watched:
        def verify(self, stored: str, password: str) -> bool:
            nonlocal working, most
            with lock:
                working += 1
                most = max(most, working)
                if working == passwords.AT_ONCE:
                    full.set()
            assert full.wait(60)
            try:
                return hasher.verify(stored, password)
            finally:
                with lock:
                    working -= 1

    monkeypatch.setattr(passwords, "PATIENCE_SECONDS", 600.0)
    stored = passwords.hashed(SECRET)
    watched = Watched()
    monkeypatch.setattr(passwords, "_hasher", lambda: watched)
    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(lambda _: passwords.is_right(stored, SECRET), range(8)))
    assert most == passwords.AT_ONCE
    monkeypatch.setattr(passwords, "PATIENCE_SECONDS", 0.0)
    for _ in range(passwords.AT_ONCE):
        assert passwords._semaphore.acquire(timeout=60)
    try:
        with pytest.raises(SignInError, match="try again"):
            passwords.is_right(None, SECRET)
    finally:
        passwords._semaphore.release(passwords.AT_ONCE)


def test_a_password_changed_while_it_was_looked_at_signs_nobody_in(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    store.people.add_person("Ada", "Ada", "manager", SECRET)
    store.people.add_person("Ada", "Bob", "annotator", SECRET)
    real = passwords.is_right

    def meanwhile(stored: str | None, password: str) -> bool:
        monkeypatch.setattr(passwords, "is_right", real)
        store.people.set_active("Ada", "Bob", False)
        return real(stored, password)

    monkeypatch.setattr(passwords, "is_right", meanwhile)
    with pytest.raises(SignInError, match="wrong"):
        store.people.sign_in("Bob", SECRET)


def test_passwords_are_argon2_and_never_shown(store: Store) -> None:
    store.people.add_person("Ada", "Ada", "manager", SECRET)
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


def test_there_is_always_a_manager_who_can_sign_in(store: Store) -> None:
    store.people.add_person("Ada", "Ada", "manager", SECRET)
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


def test_subjects(store: Store) -> None:
    store.people.add_person("Ada", "Ada", "manager", subject="https://issuer 1")
    assert store.people.sign_in_subject("https://issuer 1").name == "Ada"
    with pytest.raises(SignInError):
        store.people.sign_in_subject("https://issuer 2")
    with pytest.raises(SignInError):
        store.people.sign_in("Ada", "")  # no password is no empty password
    with pytest.raises(InputError, match="another account"):
        store.people.add_person("Ada", "Bob", "annotator", subject="https://issuer 1")
    with pytest.raises(InputError, match="account already"):
        store.people.add_person("Ada", "Ada", "annotator")
    with pytest.raises(NotFoundError, match="no account"):
        store.people.set_role("Ada", "Nobody", "manager")


def test_the_log_is_paged_and_cannot_be_changed(store: Store) -> None:
    made = project(store, 2, by="Ada")
    item = do(store, made, "Bob", "x").item
    store.returns.return_item(item, "Bob", "generation", "look again", by="Ada")
    found = store.people.activity("Ada", project=made.id)
    assert [(a.person, a.action) for a in found] == [
        ("Ada", "item returned"),
        ("Bob", "item submitted"),
        ("Bob", "item leased"),
        ("Ada", "items added"),
        ("Ada", "project created"),
    ]
    assert found[0].details == {"stage": "generation", "to": "Bob", "reason": "look again"}
    assert found[0].item == item
    pages = [store.people.activity("Ada", limit=2), store.people.activity("Ada", limit=2, before=found[1].id)]
    assert [a.id for page in pages for a in page] == [a.id for a in found[:4]]
    assert {a.person for a in store.people.activity("Ada", person="Bob")} == {"Bob"}
    with pytest.raises(InputError, match="unknown action"):
        store.people.activity("Ada", action="nonsense")
    store.people.add_person("Ada", "Ada", "manager", SECRET)
    store.people.add_person("Ada", "Bob", "annotator", SECRET)
    assert {a.person for a in store.people.activity("Bob")} == {"Bob"}  # only their own
    for table in ("activity", "submission", "interaction", "guideline"):
        store.projects.save_guidelines("Ada", made.id, "Read.")
        store.drafts.log_search(item, "Bob", "generation", "who")
        for statement in (f"UPDATE {table} SET created = created", f"DELETE FROM {table}"):
            with pytest.raises(StorageError, match="never changed or deleted"), store.database.writing() as session:
                session.execute(text(statement))


@pytest.mark.parametrize(
    "subject", ["https://issuer", " sub", "https://issuer ", "https://issuer a b", "https://issuer\t1", "i s\n", "", " "]
)
def test_a_subject_is_an_issuer_and_a_subject(store: Store, subject: str) -> None:
    """Else two parts of another cut would read the same."""
    store.people.add_person("Ada", "Ada", "manager", SECRET)
    with pytest.raises(InputError, match="ISSUER SUBJECT"):
        store.people.set_subject("Ada", "Ada", subject)
    assert not store.people.require("Ada").has_subject


@pytest.mark.parametrize(
    ("issuer", "subject"), [(None, "1"), ("https://issuer", 5), ("", "1"), ("https://issuer", "1\x00"), ("i", "\ud800")]
)
def test_claims_that_no_account_can_keep(issuer: object, subject: object) -> None:
    with pytest.raises(InputError):
        joined_subject(issuer, subject)


def test_an_address_is_not_known_for_longer_than_was_promised(store: Store, clock: Clock) -> None:
    """The clock was set back: what says that an address is known lies further ahead than it could."""
    store.people.add_person("Ada", "Ada", "manager", SECRET)
    store.people.sign_in("Ada", SECRET, "192.0.2.7")
    clock.pass_(days=-200)
    for wait in (5, 10, 20, 40, 80):
        for _ in range(5 if wait == 5 else 1):
            with pytest.raises(SignInError):
                store.people.sign_in("Ada", "wrong password", "192.0.2.7")
        with pytest.raises(SignInError) as waiting:
            store.people.sign_in("Ada", SECRET, "192.0.2.7")
        assert waiting.value.seconds == wait  # of a known address at most 60
        clock.pass_(seconds=wait + 1)


@pytest.mark.parametrize("other", ["\u0410da", "ada", "Ada\u200b", "A\u202eda"])
def test_a_name_that_looks_like_anothers_is_refused_or_the_same(store: Store, other: str) -> None:
    store.people.add_person("Ada", "Ada", "manager", SECRET)
    if other.isascii() or "\u0410" in other:
        with pytest.raises(InputError, match="Ada"):
            store.people.add_person("Ada", other, "annotator")
    else:
        assert store.people.sign_in(other, SECRET).name == "Ada"
        with pytest.raises(InputError, match="has an account"):
            store.people.add_person("Ada", other, "annotator")
    assert store.people.annotators() == ["Ada"]


def test_names_are_stored_in_one_form(store: Store) -> None:
    assert known(store, "Jose\u0301\u200d").name == "Jos\u00e9"
    assert known(store, "Jos\u00e9").name == "Jos\u00e9"
    made = project(store, 1, by="Jose\u0301", name="Ro\u0301ma\u200b \u202eone")
    assert made.name == "R\u00f3ma one"
    assert store.projects.find_project_named("Ro\u0301ma one") == made
    for other in ("r\u00f3ma one", "R\u00f3m\u0430 one", "R\u00f3ma  one"):
        with pytest.raises(InputError, match="R\u00f3ma one"):
            project(store, 0, by="Jos\u00e9", name=other)
    task = take(store, made, "Jose\u0301")
    assert store.drafts.save_draft(task.item, "Jos\u00e9", "generation", {"text": "mine"}, 0).version == 1
    assert store.people.annotators() == ["Jos\u00e9"]
