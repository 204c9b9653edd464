"""Runs the measurement of ./stage bench --against llama-server with our own server in place of llama-server."""
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "tools"))
import against_server  # noqa: E402
import repository  # noqa: E402

PROGRAM = sys.argv.pop(1)


def asking(prompts, generate):
    return lambda port: against_server.load(port, prompts, generate)


class Load(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.log = f"{folder.name}/log"

    def test_every_client_gets_all_of_its_answers(self):
        prompts = [["Once upon a time"] * 2, ["Lily and Ben"] * 3, ["The dog"]]
        with against_server.serving([PROGRAM, "serve", "--model", ROOT / "models" / "story"], self.log) as (pid, port):
            answers, _ = against_server.asyncio.run(against_server.load(port, prompts, 8))
            self.assertGreater(against_server.most_memory(pid), 5)
        self.assertEqual([answer.tokens for answer in answers], [8] * 6)
        self.assertTrue(all(answer.asked < answer.pieces[0] for answer in answers))

    def test_measures(self):
        command = [PROGRAM, "serve", "--model", ROOT / "models" / "story"]
        found = against_server.measure(command, asking([["Once upon a time"], ["A cat"]], 16), self.log)
        self.assertEqual(len(found), len(against_server.MEASURES))
        rate, first, first_99, between, between_99, _ = found
        self.assertGreater(rate, 0)
        self.assertTrue(0 < first <= first_99 and 0 < between <= between_99, found)

    def test_each_conversation_goes_on_with_its_own_answers(self):
        chats = [[f"Once there was {who}", "Then he", "But"] for who in ("a cat", "Tim", "a tree")]
        with against_server.serving([PROGRAM, "serve", "--model", ROOT / "models" / "story"], self.log) as (_, port):
            answers, _ = against_server.asyncio.run(against_server.talk(port, chats, 2, 8))
            answered = []
            for chat in chats:
                text = ""
                for message in chat:
                    text += f" {message}"
                    answered.append(against_server.asyncio.run(against_server.ask(port, text, 8)).text)
                    text += answered[-1]
        self.assertEqual(sorted(answer.text for answer in answers), sorted(answered))

    def test_conversations_begin_alike(self):
        chats = against_server.chats_of(12, 1)
        self.assertEqual(len({chat[0].rsplit(" ", 1)[0] for chat in chats}), 1)
        self.assertEqual(len({chat[1] for chat in chats}), 12)
        self.assertEqual({len(chat) for chat in chats}, {against_server.TURNS})

    def test_prompts_have_all_lengths_and_begin_in_different_ways(self):
        prompts = sum(against_server.prompts_of(64, 1), [])
        words = [len(prompt.split()) for prompt in prompts]
        self.assertLess(min(words), 60)
        self.assertGreater(max(words), 800)
        self.assertEqual(len({prompt.split()[0] for prompt in prompts}), len(prompts))
        self.assertEqual(prompts, sum(against_server.prompts_of(64, 1), []))

    def test_a_server_that_does_not_start_or_refuses_is_named(self):
        with self.assertRaisesRegex(repository.Problem, "exit code 1: .*no_such_model"):
            against_server.measure([PROGRAM, "serve", "--model", "no_such_model"], asking([["Once"]], 8), self.log)
        command = [PROGRAM, "serve", "--model", ROOT / "models" / "story", "-c", "16"]
        with self.assertRaisesRegex(repository.Problem, "400"):
            against_server.measure(command, asking([["Once upon a time " * 20]], 8), self.log)


if __name__ == "__main__":
    unittest.main()
