from pathlib import Path

from fastqueue import Permanent, Queue


async def test_a_mail_that_failed_is_seen_and_sent_once_its_cause_is_mended(tmp_path: Path) -> None:
    queue, sent, full = Queue(f"sqlite:///{tmp_path}/shop.db"), list[str](), {"ada@example.org"}

    @queue.handle("welcome")
    async def welcome(email: str) -> None:
        if email in full:
            raise Permanent("the mailbox is full")  # anything else would be tried ten times before it fails
        sent.append(email)

    async with queue:
        await welcome.push_many(["ada@example.org", "bob@example.org"])
        await queue.drain()
        assert sent == ["bob@example.org"]

        (job,) = await queue.failed()
        assert (job.kind, job.payload, job.error) == ("welcome", '"ada@example.org"', "the mailbox is full")

        full.clear()
        assert await queue.run_again(job.id)
        await queue.drain()
        assert sent == ["bob@example.org", "ada@example.org"]
        assert await queue.failed() == []
