"""The page of `serve` in a real browser: page_test.py PROGRAM [--pictures FOLDER]

--pictures writes pictures of the page, as docs/page.md shows them, into this folder. Without
Chromium and its driver the test is skipped.
"""
import json
import pathlib
import sys
import tempfile
import unittest

import browser as browsers
from serving import MODELS, serving

PROGRAM = sys.argv[1:2]
QUIET = "document.getElementById('stop').hidden && document.querySelector('.assistant .actions')"
# Makes streams as slow as a slow line: one event every 50 ms, on any processor. A comment before each event says that
# the line still works.
SLOW_LINE = """
    const fast = window.fetch;
    window.fetch = async (path, options) => {
      const answer = await fast(path, options);
      if (!answer.headers.get("Content-Type").startsWith("text/event-stream")) return answer;
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      const waiting = [""];
      const slow = new ReadableStream({
        async pull(out) {
          while (waiting.length === 1) {
            const { value, done } = await reader.read();
            if (done) return out.close();
            waiting.push(...(waiting.pop() + value).split("\\n\\n"));
          }
          await new Promise((later) => setTimeout(later, 50));
          options.signal.throwIfAborted();
          out.enqueue(new TextEncoder().encode(`: slow\\n\\n: line\\n${waiting.shift()}\\n\\n`));
        },
      });
      return new Response(slow, answer);
    };"""
# Changes the logits of tokens in each chat: {id: number}.
BIAS = """
    const unbiased = window.fetch;
    const biased = (body) => JSON.stringify({ ...JSON.parse(body), logit_bias: arguments[0] });
    window.fetch = (path, options) =>
      unbiased(path, path.includes("/chat/") ? { ...options, body: biased(options.body) } : options);"""
HOSTILE = "<img src=x onerror=\"document.title='run'\"><script>document.title='run'</script>"


def say(page, text):
    page.type("#prompt", text)
    page.press("Enter")
    page.wait(QUIET)


def keep(page, server, **kept):
    """Stores this in the browser as the page's data for the server's model, and removes everything else."""
    page.open(f"http://127.0.0.1:{server.port}/")
    model = json.loads(server.ask("GET", "/glass/model")[2])
    page.run("localStorage.clear(); sessionStorage.clear();"
             "localStorage.setItem('stagecraft-theme', arguments[2]);"
             "localStorage.setItem(arguments[0],"
             "JSON.stringify({conversations: [], settings: arguments[1]}))",
             f"stagecraft {model['model']} {model['vocab_size']}", kept["settings"],
             kept.get("theme", "light"))
    page.open(f"http://127.0.0.1:{server.port}/")
    page.wait("document.querySelector('.welcome')")


def look(page, view):
    page.click(f"#tab-{view}")
    page.wait("!document.getElementById('view').hasAttribute('aria-busy')")


@unittest.skipIf(browsers.missing() and "--pictures" not in sys.argv, browsers.missing())
class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.context = browsers.browsing()
        cls.page = cls.context.__enter__()
        cls.addClassCleanup(cls.context.__exit__, None, None, None)

    def open(self, server, **settings):
        """Opens the page with these settings and no conversations. A fixed seed makes answers repeatable."""
        page = self.page
        keep(page, server, settings={"seed": 7, "max_tokens": 24, **settings})
        return page

    def test_a_chat_and_its_glass_box(self):
        with serving(PROGRAM, "--model", MODELS / "chat") as server:
            page = self.open(server)
            say(page, "Hello, who are you?")
            expected = server.post("/v1/chat/completions", {
                "messages": [{"role": "user", "content": "Hello, who are you?"}], "seed": 7,
                "max_tokens": 24, "return_token_ids": True})
            [choice] = expected["choices"]
            self.assertEqual(page.text(".assistant .body"), choice["message"]["content"])
            # The text for a screen reader:
            self.assertEqual(page.text("#said"), choice["message"]["content"])
            self.assertEqual(len(page.texts(".assistant .token")), len(choice["token_ids"]))

            page.click(".assistant .token:nth-child(3)")
            page.wait("document.querySelectorAll('#view tbody tr').length >= 12")
            tokens = [*expected["prompt_token_ids"], *choice["token_ids"][:2]]
            asked = {"tokens": tokens, "next": choice["token_ids"][2], "top": 12}
            found = server.post("/glass/choices", asked)["choices"]
            shown = page.run("return [...document.querySelectorAll('#view tbody tr')].map((row) =>"
                             "[...row.querySelectorAll('.bar')].map((cell) => cell.textContent))")
            self.assertEqual(len(shown), len(found))
            for row, one in zip(shown, found):
                for text, name in zip(row, ("probability", "after_temperature", "after_top_k",
                                            "after_top_p")):
                    share = 0 if text == "–" else float(text.removesuffix("%")) / 100
                    self.assertAlmostEqual(share, one[name], delta=6e-4)
            self.assertEqual(len(page.texts("#view tr.taken")), 1)

            look(page, "attention")
            attention = server.post("/glass/attention", asked)
            heads = [shares for layer in attention["layers"] for shares in layer["heads"]]
            width, height = page.run("const c = document.querySelector('#view canvas');"
                                     "return [c.width / arguments[0], c.height / arguments[1]]",
                                     len(tokens), len(heads))
            self.assertEqual((width % 1, height % 1), (0, 0))
            self.assertEqual("".join(page.texts(".shaded span")), "".join(attention["texts"]))
            page.run("document.querySelector('#view canvas').focus()")
            page.press(*["ArrowUp"] * len(heads), "ArrowDown")
            page.press(*["ArrowLeft"] * len(tokens), "ArrowRight")
            said = page.text("#view [role=status]")
            self.assertIn("Layer 0, head 1: ", said)
            self.assertIn(f"on token 2 of {len(tokens)}", said)
            self.assertAlmostEqual(float(said.split(": ")[1].split("%")[0]) / 100, heads[1][1],
                                   delta=6e-4)

            look(page, "layers")
            layers = server.post("/glass/layers", asked)["layers"]
            self.assertEqual(page.texts("#view tbody td.number"),
                             [str(one["next"]["rank"] + 1) for one in layers])
            look(page, "steps")
            names = page.texts("#view tbody th")
            self.assertIn(f"attn_out × {len(layers)}", names)
            self.assertIn("logits", names)
            page.run("const which = document.getElementById('which-layer');"
                     "which.value = '1'; which.onchange()")
            self.assertIn("attn_out", page.texts("#view tbody th"))

            page.press("Escape")
            self.assertTrue(page.run("return document.getElementById('glass').hidden"))
            self.assertEqual(page.log(), [])

    def test_goes_on_from_another_token(self):
        with serving(PROGRAM, "--model", MODELS / "chat") as server:
            page = self.open(server, temperature=0)
            say(page, "Hello, who are you?")
            before = page.texts(".assistant .token")
            page.click(".assistant .token:nth-child(4)")
            page.wait("document.querySelectorAll('#view .chip').length > 5")
            page.click("#view tbody tr:nth-child(2) .chip")
            page.wait(QUIET)
            after = page.texts(".assistant .token")
            self.assertEqual(after[:3], before[:3])
            self.assertNotEqual(after[3], before[3])
            self.assertGreater(len(after), 4)
            # The old conversation still exists, and both exist after the page is opened again.
            page.open(f"http://127.0.0.1:{server.port}/")
            page.wait("document.querySelector('.assistant .token')")
            self.assertEqual(page.texts(".assistant .token"), after)
            self.assertEqual(len(page.texts("#conversations option")), 2)
            page.run("const c = document.getElementById('conversations');"
                     "c.selectedIndex = 1; c.dispatchEvent(new Event('change'))")
            self.assertEqual(page.texts(".assistant .token"), before)
            # Token 0 ends a text, too, although the chat template does not use it.
            page.run("const real = window.fetch; window.fetch = async (path, options) => {"
                     "const found = await (await real(path, options)).json();"
                     "found.choices[1].token = 0; return Response.json(found); }")
            page.click(".assistant .token:nth-child(4)")
            page.wait("document.querySelectorAll('#view .chip').length > 5")
            page.click("#view tbody tr:nth-child(2) .chip")
            page.wait("document.getElementById('status').textContent === 'The answer ends here.'")
            self.assertEqual(page.texts(".assistant .token"), before[:3])

    def test_stop_edit_and_retry(self):
        with serving(PROGRAM, "--model", MODELS / "story", "--parallel", 1) as server:
            page = self.open(server, max_tokens=400, temperature=0)
            page.run(SLOW_LINE)
            page.type("#prompt", "Once upon a time")
            page.press("Enter")
            page.wait("document.querySelectorAll('.assistant .token').length > 3")
            page.click("#stop")
            page.wait(QUIET)
            self.assertEqual(page.text("#status"), "Stopped.")
            server.wait_for(lambda now: now["texts_running"] == 0)
            stopped = page.text(".assistant .body")
            page.run("const is = (key) => key.startsWith('stagecraft ');"
                     "const key = Object.keys(localStorage).find(is);"
                     "const kept = JSON.parse(localStorage[key]); kept.settings.max_tokens = 5;"
                     "localStorage[key] = JSON.stringify(kept)")
            page.open(f"http://127.0.0.1:{server.port}/")
            page.wait("document.querySelector('.assistant .token')")
            self.assertEqual(page.text(".assistant .body"), stopped)
            n = len(page.texts(".assistant .token"))
            page.click(".assistant .actions button:nth-child(2)")  # Continue
            page.wait(f"document.querySelectorAll('.assistant .token').length === {n + 5}")
            page.wait(QUIET)
            page.click(".assistant .actions button:nth-child(1)")  # Retry
            page.wait("document.querySelectorAll('.assistant .token').length === 5")
            page.wait(QUIET)
            page.click(".user .actions button")  # Edit
            page.type(".user textarea", ", there")
            page.click(".user .actions button")
            page.wait("document.querySelectorAll('.assistant .token').length === 5")
            page.wait(QUIET)
            self.assertEqual(page.text(".user .body"), "Once upon a time, there")

    def test_keeps_an_answer_that_a_reload_interrupts(self):
        with serving(PROGRAM, "--model", MODELS / "story") as server:
            page = self.open(server, max_tokens=400)
            page.run(SLOW_LINE)
            page.type("#prompt", "Once upon a time")
            page.press("Enter")
            kept = "JSON.stringify(localStorage)"
            page.wait(f"{kept}.includes('Once upon a time')", seconds=1)
            page.wait(f"{kept}.includes('logprob')")  # also before the page is left
            text = page.text(".assistant .body")
            page.open(f"http://127.0.0.1:{server.port}/")
            page.wait("document.querySelector('.assistant .token')")
            self.assertEqual(page.text(".user .body"), "Once upon a time")
            self.assertTrue(page.text(".assistant .body").startswith(text))
            self.assertIn("Continue", page.texts(".assistant .actions button"))

    def test_two_models_side_by_side(self):
        with serving(PROGRAM, "--model", MODELS / "story", "--beside", MODELS / "story") as server:
            page = self.page
            page.open(f"http://127.0.0.1:{server.port}/")
            page.wait("document.querySelector('.welcome')")
            say(page, "Once upon a time")
            first, second = page.texts(".assistant .body")
            self.assertEqual(first, second)  # the same model and the same seed
            self.assertEqual(page.texts(".parts"), [])
            self.assertEqual(page.text("#said"), f"story: {first}\nstory: {first}")
            page.click("[data-answer='1'] .token:nth-child(3)")
            page.wait("document.querySelectorAll('#view tbody tr').length >= 12")
            self.assertEqual(page.run("return document.querySelector('#view .chip').disabled"), True)
            self.assertEqual(page.log(), [])
        with serving(PROGRAM, "--model", MODELS / "chat", "--beside", MODELS / "story") as server:
            self.assertEqual(server.ask("GET", "/beside/v1/models")[0], 200)
            page.open(f"http://127.0.0.1:{server.port}/")
            page.wait("document.querySelector('.welcome')")
            say(page, "Hello, who are you?")
            self.assertEqual(page.texts(".assistant .who"), ["chat", "story"])
            first, second = page.texts(".assistant .body")
            self.assertTrue(first and second and first != second)

    def test_the_second_model_answers_after_it_failed(self):
        with serving(PROGRAM, "--model", MODELS / "chat", "--beside", MODELS / "chat") as server:
            page = self.page
            page.open(f"http://127.0.0.1:{server.port}/")
            page.wait("document.querySelector('.welcome')")
            page.run("const real = window.fetch; window.fetch = (path, options) => {"
                     "if (!path.startsWith('/beside/')) return real(path, options);"
                     "window.fetch = real; return real(path, { ...options, body: '{}' }); }")
            say(page, "Hello, who are you?")
            first, second = page.texts(".assistant .body")
            self.assertTrue(first and not second)
            page.click(".assistant .actions button:nth-child(2)")  # Continue
            page.wait(QUIET)
            again, second = page.texts(".assistant .body")
            self.assertTrue(again.startswith(first) and second)
            self.assertEqual(len(page.log()), 1)  # of the failed request

    def test_an_empty_answer_is_an_answer(self):
        with serving(PROGRAM, "--model", MODELS / "chat") as server:
            page = self.open(server)
            page.run(BIAS, {"2": 100})  # <|im_end|>
            say(page, "Hello!")
            self.assertEqual(page.text(".assistant .body"), "(empty)")
            self.assertEqual(page.text("#said"), "(empty)")
            self.assertEqual(page.texts(".assistant .actions button"), ["Retry"])
            say(page, "Who are you?")
            self.assertEqual(page.texts(".message .body"), ["Hello!", "(empty)", "Who are you?", "(empty)"])

    def test_a_full_context_is_no_dead_end(self):
        with serving(PROGRAM, "--model", MODELS / "chat", "--context", 64) as server:
            page = self.open(server, max_tokens=None)
            page.run(BIAS, {"0": -100, "1": -100, "2": -100})  # no end
            for question in ("Hello, who are you?", "What do you like?"):
                say(page, question)
                self.assertIn("the context of 64 tokens is full", page.text("#status"))
                self.assertEqual(page.texts(".message:last-child .actions button"), ["Retry", "Look inside"])
            forgets = "it does not see the first 2 messages"
            self.assertIn(forgets, page.text(".message:last-child .who"))
            # Here the answer leaves room, but not for so long a message.
            page = self.open(server, max_tokens=5)
            say(page, "Hello, who are you?")
            say(page, "the " * 35)
            self.assertIn(forgets, page.text(".message:last-child .who"))
            self.assertEqual(len(page.texts(".message:last-child .token")), 5)
            self.assertEqual(len(page.log()), 1)  # of the request that was too long

    def test_the_reader_and_the_focus_keep_their_place(self):
        with serving(PROGRAM, "--model", MODELS / "chat") as server:
            page = self.open(server)
            page.size(390, 500)
            for _ in range(4):
                say(page, "Hello, who are you?")
            focus = "document.activeElement.closest('.message')?.dataset.message"
            scroll = "return document.getElementById('messages').scrollTop"
            page.run(SLOW_LINE)
            page.click(".message:last-child .actions button")  # Retry
            self.assertEqual(page.run(f"return {focus}"), "7")
            page.run("document.getElementById('messages').scrollTop = 0")
            page.wait(QUIET)
            self.assertEqual((page.run(scroll), page.run(f"return {focus}")), (0, "7"))
            page.click(".user .actions button")  # Edit
            page.click(".user .actions button:nth-child(2)")  # Cancel
            self.assertEqual((page.run(scroll), page.text(":focus")), (0, "Edit"))
            self.assertEqual(page.run("return document.getElementById('glass-context').role"), "status")
            page.click(".assistant .token:nth-child(3)")
            page.press("Escape")
            self.assertEqual(page.run(f"return {focus}"), "1")
            page.click(".assistant .token:nth-child(3)")
            page.type("#prompt", "And the sea?")
            page.press("Enter")
            self.assertEqual(page.run("return document.activeElement.id"), "prompt")
            page.wait(QUIET)

    def test_shows_text_as_text(self):
        with serving(PROGRAM, "--model", MODELS / "chat", "--alias", HOSTILE) as server:
            page = self.open(server)
            say(page, HOSTILE)
            self.assertEqual(page.text(".user .body"), HOSTILE)
            self.assertEqual(page.text("#model"), HOSTILE)
            self.assertEqual(page.texts("img, main script"), [])
            # The policy of the page forbids such a script, even if the text became HTML.
            page.run("document.querySelector('#model').innerHTML = arguments[0]", HOSTILE)
            page.run("const script = document.createElement('script');"
                     "script.textContent = \"document.title = 'run'\";"
                     "document.body.append(script)")
            self.assertNotEqual(page.run("return document.title"), "run")
            self.assertTrue(any("Content Security Policy" in line for line in page.log()))

    def test_asks_for_the_key_and_keeps_it_for_the_tab_alone(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "key"
            file.write_text("secret\n")
            with serving(PROGRAM, "--model", MODELS / "chat", "--api-key-file", file) as server:
                page = self.page
                page.open(f"http://127.0.0.1:{server.port}/")
                page.wait("document.getElementById('key').open")
                # An HTTP header cannot have the second key.
                for key, problem in (("wrong", "does not accept"), ("secret\u200b", "not a key")):
                    page.type("#key input", key)
                    page.press("Enter")
                    page.wait("document.querySelector('#key').open &&"
                              "document.querySelector('#key-problem').textContent.includes(arguments[0])", problem)
                    self.assertEqual(page.run("return document.querySelector('#key input').value"), "")
                page.run("sessionStorage.setItem('stagecraft-key', 'secret\u200b')")
                page.open(f"http://127.0.0.1:{server.port}/")
                page.wait("document.getElementById('key').open")
                page.type("#key input", "secret")
                page.press("Enter")
                page.wait("document.querySelector('.welcome, .message')")
                self.assertNotIn("secret", page.run("return JSON.stringify(localStorage)"))

    def test_works_at_the_width_of_a_phone_and_has_names_for_everything(self):
        with serving(PROGRAM, "--model", MODELS / "chat") as server:
            for width, height in ((1280, 800), (390, 844)):
                self.page.size(width, height)
                page = self.open(server)
                say(page, "Hello, who are you? " + "x" * 300)
                fields = "[...document.querySelectorAll('input, select, textarea')]"
                sizes = page.run(f"return {fields}.map((one) => parseFloat(getComputedStyle(one).fontSize))")
                if width < 760:
                    self.assertGreaterEqual(min(sizes), 16)  # iOS zooms in on smaller ones
                page.click(".assistant .token:nth-child(2)")
                for view in ("choices", "attention", "layers", "steps"):
                    look(page, view)
                    self.assertLessEqual(
                        page.run("return document.documentElement.scrollWidth"), width, view)
                    nameless = page.run("""
                        const all = "button, input, select, textarea, canvas";
                        const has = (e) => e.textContent.trim() || e.labels?.length
                                           || e.getAttribute("aria-label");
                        return [...document.querySelectorAll(all)]
                          .filter((e) => e.checkVisibility() && !has(e)).map((e) => e.outerHTML)""")
                    self.assertEqual(nameless, [], view)
                for _ in range(5):
                    say(page, "Hello " * 30)
                page.click(".assistant .token:nth-child(2)")
                look(page, "choices")
                fits = page.run("const box = (id) => document.getElementById(id).getBoundingClientRect();"
                                "return [document.documentElement.scrollHeight, box('glass').height,"
                                "box('prompt').bottom]")
                self.assertLessEqual(fits[0], height)
                self.assertGreater(fits[1], 200)
                self.assertLess(fits[2], height)

    def test_enter_in_a_setting_saves_it(self):
        with serving(PROGRAM, "--model", MODELS / "chat") as server:
            page = self.open(server)

            def temperature():
                page.click("#settings-open")
                return page.run("return document.querySelector('[name=temperature]').value")

            temperature()
            page.run("document.querySelector('[name=temperature]').value = ''")
            page.type("[name=temperature]", "1.5")
            page.press("Enter")
            page.wait("!document.getElementById('settings').open")
            self.assertEqual(temperature(), "1.5")
            page.run("document.querySelector('[name=temperature]').value = '0.1'")
            page.click("#settings-cancel")
            self.assertEqual(temperature(), "1.5")

    def test_a_full_store_keeps_the_open_conversation(self):
        with serving(PROGRAM, "--model", MODELS / "chat") as server:
            page = self.open(server)
            page.run("""
                const key = Object.keys(localStorage).find((name) => name !== 'stagecraft-theme');
                const all = ['a', 'b', 'open'].map((id) => ({ id, title: id, messages: [] }));
                const kept = { conversations: all, current: 'open', settings: { max_tokens: 24 } };
                const store = (length) => {
                  all[1].title = 'x'.repeat(length);
                  try { localStorage.setItem(key, JSON.stringify(kept)); return true; } catch { return false; }
                };
                let [fits, tooMuch] = [0, 6e6];
                while (tooMuch - fits > 300) {
                  const middle = Math.floor((fits + tooMuch) / 2);
                  if (store(middle)) fits = middle; else tooMuch = middle;
                }
                store(fits);""")
            page.open(f"http://127.0.0.1:{server.port}/")
            page.wait("document.querySelector('.welcome')")
            say(page, "Hello!")
            self.assertEqual(page.run("return [...document.querySelectorAll('#conversations option')]"
                                      ".map((one) => one.value)"), ["a", "open"])
            self.assertEqual(page.log(), [])

    def test_takes_the_conversations_and_settings_of_another_tab(self):
        with serving(PROGRAM, "--model", MODELS / "chat") as server:
            page = self.open(server)
            say(page, "Hello!")
            page.run("const key = Object.keys(localStorage).find((name) => name !== 'stagecraft-theme');"
                     "const newValue = JSON.stringify({ conversations: [{ id: 'x', title: 'Other', messages: [] }],"
                     "settings: { seed: 8 } });"
                     "dispatchEvent(new StorageEvent('storage', { key, newValue }))")
            self.assertEqual(page.texts("#conversations option"), ["Hello!", "Other"])
            self.assertEqual(len(page.texts(".assistant .body")), 1)
            page.click("#settings-open")
            self.assertEqual(page.run("return document.querySelector('[name=seed]').value"), "8")


def take_pictures(folder):
    with serving(PROGRAM, "--model", MODELS / "chat") as server, browsers.browsing() as page:
        for name, size, theme, view in (("page.webp", (1280, 800), "light", "choices"),
                                        ("page-dark.webp", (1280, 800), "dark", "attention")):
            page.size(*size)
            keep(page, server, settings={"seed": 11, "max_tokens": 60}, theme=theme)
            say(page, "What do you like about the sea?")
            page.click(".assistant .token:nth-child(7)")
            look(page, view)
            page.picture(folder / name)


if __name__ == "__main__":
    if "--pictures" in sys.argv:
        take_pictures(pathlib.Path(sys.argv[sys.argv.index("--pictures") + 1]))
        sys.exit()
    unittest.main(argv=sys.argv[:1] + sys.argv[2:], verbosity=2)
