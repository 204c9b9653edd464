"""Tests the Python package: module_test.py, with a Python that has the package, NumPy and Matplotlib

./stage selftest --python installs the package into its own environment and runs this.
"""
import importlib.metadata
import json
import os
import pathlib
import shutil
import tempfile
import threading
import unittest
import unittest.mock

import numpy as np
import stagecraft

ROOT = pathlib.Path(__file__).resolve().parents[2]
STORY, CHAT = ROOT / "models" / "story", ROOT / "models" / "chat"
PROMPT = "Once upon a time"


class Story(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.model = stagecraft.Model(STORY, threads=2)

    def generate(self, prompt=PROMPT, **options):
        return self.model.generate(prompt, **{"seed": 7, "max_tokens": 24, **options})

    def test_says_its_version(self):
        self.assertEqual(stagecraft.__version__, importlib.metadata.version("stagecraft"))

    def test_text_comes_in_pieces_and_is_the_same_for_the_same_seed(self):
        first = self.generate()
        pieces = list(first)
        self.assertGreater(len(pieces), 5)
        self.assertEqual(first.reason, "max_tokens")
        self.assertEqual(len(first.tokens), 24)
        self.assertEqual("".join(pieces), "".join(self.generate()))
        self.assertNotEqual("".join(pieces), "".join(self.generate(seed=8)))

    def test_texts_side_by_side_do_not_disturb_each_other(self):
        alone = "".join(self.generate())
        one, other = self.generate(), self.generate("The dog")
        said = ""
        for piece, _ in zip(one, other):
            said += piece
        self.assertTrue(alone.startswith(said))
        self.assertEqual(said + "".join(one), alone)

    def test_threads_get_what_one_thread_gets(self):
        alone = "".join(self.generate())
        found = []
        threads = [threading.Thread(target=lambda: found.append("".join(self.generate()))) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(found, [alone] * 4)

    def test_a_stop_text_ends_it_and_is_not_said(self):
        alone = "".join(self.generate())
        word = alone.split()[3]
        text = self.generate(stop=[word])
        self.assertEqual("".join(text), alone[:alone.index(word)])
        self.assertEqual(text.reason, "stop")
        self.assertEqual("".join(self.generate(stop=word)), alone[:alone.index(word)])

    def test_ids_are_a_prompt_too(self):
        ids = self.model.encode(PROMPT)
        self.assertIn(PROMPT, self.model.decode(ids))
        self.assertEqual("".join(self.generate(ids)), "".join(self.generate()))

    def test_greedy_text_follows_the_logits(self):
        ids = self.model.encode(PROMPT)
        for _ in range(3):
            text = self.generate(ids, temperature=0, max_tokens=1)
            list(text)
            logits = self.model.logits(ids)
            self.assertEqual((logits.shape, logits.dtype), ((len(ids), self.model.vocab_size), np.float32))
            self.assertEqual(text.tokens, [logits[-1].argmax()])
            ids += text.tokens

    def test_a_trace_ends_in_the_logits_and_its_attention_sums_to_1(self):
        ids = self.model.encode(PROMPT)
        trace = self.model.trace(ids)
        self.assertEqual(next(iter(trace)), "embedding")
        exact = stagecraft.Model(STORY, kv_type="f32")  # a trace does not round keys and values
        np.testing.assert_allclose(trace["logits"], exact.logits(ids), atol=1e-3)
        shares = trace["layers.0.attn_probs"]
        self.assertEqual(shares.shape[1:], (len(ids), len(ids)))
        np.testing.assert_allclose(shares.sum(axis=-1), 1, atol=1e-5)
        self.assertEqual(np.triu(shares, 1).max(), 0)  # the causal mask

    def test_the_plan_is_a_text(self):
        self.assertIn("attention", self.model.plan())

    def test_a_text_ends_where_the_context_does(self):
        model = stagecraft.Model(STORY, context=8)
        text = model.generate(PROMPT, temperature=0)
        list(text)
        self.assertEqual(text.reason, "context")

    def test_a_pulled_model_is_opened_by_its_name_or_its_folder(self):
        with tempfile.TemporaryDirectory() as cache, unittest.mock.patch.dict(os.environ, XDG_CACHE_HOME=cache):
            folder = pathlib.Path(cache) / "stagecraft" / "models" / "one"
            folder.mkdir(parents=True)
            shutil.copy(ROOT / "tests" / "data" / "gguf" / "whole.gguf", folder)
            plan = stagecraft.Model(folder / "whole.gguf").plan()
            self.assertEqual(stagecraft.Model("one").plan(), plan)
            self.assertEqual(stagecraft.Model(folder).plan(), plan)

    def test_errors_name_what_was_expected(self):
        for call, parts in (
                (lambda: stagecraft.Model("/no/such/model"), ["/no/such/model"]),
                (lambda: stagecraft.Model("no-such-model"), ["no-such-model", "./stage models"]),
                (lambda: stagecraft.Model(""), ["no such folder"]),
                (lambda: stagecraft.Model(STORY, backend="gpu"), ["backend", "cpu or textbook", "gpu"]),
                (lambda: stagecraft.Model(STORY, backend="textbook", kv_type="q8_0"), ["kv_type", "f32", "q8_0"]),
                (lambda: self.generate([]), ["prompt", "at least one"]),
                (lambda: self.model.logits([1] * (self.model.context + 1)), ["prompt", str(self.model.context)]),
                (lambda: self.model.trace([1] * (self.model.context + 1)), ["prompt", str(self.model.context)]),
                (lambda: self.generate([1] * (self.model.context + 1)), ["prompt", str(self.model.context)]),
                (lambda: list(self.generate([10 ** 6])), ["1000000"]),
                (lambda: self.generate(temperature=-1), ["temperature", "0 to 100", "-1"]),
                (lambda: self.generate(top_p=float("nan")), ["top_p"]),
                (lambda: self.generate(max_tokens=-1), ["max_tokens", "from 0 to", "-1"]),
                (lambda: self.generate(top_k=-1), ["top_k", "from 0 to", "-1"]),
                (lambda: self.generate(seed=-1), ["seed", "from 0 to", "-1"]),
                (lambda: self.generate(seed=2 ** 64), ["seed", str(2 ** 64 - 1), str(2 ** 64)]),
                (lambda: self.generate(stop=""), ["stop", "empty"]),
                (lambda: stagecraft.Model(STORY, threads=-1), ["threads", "0 to 256", "-1"]),
                (lambda: stagecraft.Model(STORY, context=-1), ["context", "from 0 to", "-1"]),
                (lambda: stagecraft.Model(STORY, chat_template="lama2"),
                 ["chat_template: expected a file or one of", "llama2", "'lama2'"]),
                (lambda: self.model.chat([{"role": "user", "content": "x"}]),
                 ["choose one (chat_template): chatml"]),
                (lambda: self.model.logits([-1]), ["-1"]),
                (lambda: self.model.trace([10 ** 6]), ["1000000"]),
                (lambda: self.model.logits([]), ["prompt"])):
            with self.assertRaises(stagecraft.Error) as caught:
                call()
            for part in parts:
                self.assertIn(part, str(caught.exception))
            self.assertNotIn("\n", str(caught.exception))
        for call in (lambda: self.model.generate(3.5), lambda: self.generate(temperature="warm"),
                     lambda: self.generate(max_tokens="x"), lambda: self.generate(top_k=1.5),
                     lambda: self.generate(stop=[5]), lambda: stagecraft.Model(STORY, threads="x"),
                     lambda: self.model.chat("Hello!")):
            with self.assertRaises(TypeError):
                call()

    def test_whole_numbers_may_be_those_of_numpy(self):
        same = self.generate(seed=np.int64(7), max_tokens=np.int32(24), top_k=np.uint8(40))
        self.assertEqual("".join(same), "".join(self.generate()))

    def test_a_template_may_be_chosen(self):
        model = stagecraft.Model(STORY, chat_template="zephyr")
        list(model.chat([{"role": "user", "content": "Hello!"}], max_tokens=2))


class Chat(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.model = stagecraft.Model(CHAT)

    def test_a_conversation_goes_on(self):
        messages = [{"role": "user", "content": "Do you have a dog?"}]
        answer = "".join(self.model.chat(messages, seed=3))
        self.assertTrue(answer.strip())
        messages += [{"role": "assistant", "content": answer}, {"role": "user", "content": "What is its name?"}]
        second = "".join(self.model.chat(messages, seed=3))
        fresh = stagecraft.Model(CHAT)
        self.assertEqual("".join(fresh.chat(messages, seed=3)), second)

    def test_an_empty_text_has_no_tokens(self):
        self.assertEqual(self.model.encode(""), [])  # this tokenizer adds none at the beginning

    def test_the_messages_are_checked(self):
        user = {"role": "user", "content": "Hello!"}
        for messages in ([], [{"role": "assistant", "content": "Hello!"}], [user, user],
                         [{"role": "user"}], [user, {"role": "system", "content": "Be brief."}, user]):
            with self.assertRaises(stagecraft.Error) as caught:
                self.model.chat(messages)
            self.assertIn("message", str(caught.exception))
        for wrong, found in (({"role": "user", "content": 5}, "{'role': 'user', 'content': 5}"),
                             ({"role": "user", "content": None}, "None}"), (5, "5"), ("x\ny", "'x"),
                             ({1: "user"}, "{1: "), ({"role": "user", "content": "\ud800"}, "ud800"),
                             ({"role": "user", "content": b"x"}, "b'x'")):
            with self.assertRaises(stagecraft.Error) as caught:
                self.model.chat([user, {"role": "assistant", "content": "Hello!"}, wrong])
            said = str(caught.exception)
            self.assertTrue(said.startswith("messages: message 3: expected a dictionary with the strings role and "
                                            "content, found "), said)
            self.assertIn(found, said)
            self.assertNotIn("\n", said)


class Notebook(unittest.TestCase):
    def test_its_cells_run(self):
        os.environ["MPLBACKEND"] = "Agg"
        os.chdir(ROOT / "examples")
        cells = json.loads((ROOT / "examples" / "attention.ipynb").read_text())["cells"]
        names = {}
        for cell in cells:
            if cell["cell_type"] == "code":
                exec("".join(cell["source"]), names)  # pylint: disable=exec-used
        self.assertTrue(names["plt"].get_fignums())


if __name__ == "__main__":
    unittest.main(verbosity=2)
