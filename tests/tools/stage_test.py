"""Tests the script ./stage itself, with a copy of it in a small tree with a program of ten lines.

Standard library only; ctest runs it. The engine's own commands are tested elsewhere.
"""
import contextlib
import fcntl
import os
import pathlib
import pty
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unicodedata
import unittest

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = r"""
#include <cstdio>
#include <cstdlib>
#include <cstring>
int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) std::printf("<%s>", argv[i]);
  std::printf("MARK");
  if (argc > 2 && std::strcmp(argv[2], "home") == 0) std::printf("%s", std::getenv("STAGECRAFT_HOME"));
  if (argc > 2 && std::strcmp(argv[2], "columns") == 0) std::printf("%s", std::getenv("STAGECRAFT_PAGED"));
  if (argc > 2 && std::strcmp(argv[2], "wait") == 0) {
    std::fflush(stdout);
    for (;;) {}
  }
  return argc > 2 ? std::atoi(argv[2]) : 0;
}
"""
CMAKE = """
cmake_minimum_required(VERSION 3.22)
project(tiny LANGUAGES CXX)
find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
endif()
add_subdirectory(src)
"""
PRESETS = """{ "version": 3, "configurePresets": [ { "name": "release", "generator": "Ninja",
  "binaryDir": "${sourceDir}/build/release" } ] }"""


def has_pseudo_terminals():
    try:
        for end in pty.openpty():
            os.close(end)
    except OSError:
        return False
    return True


class Tree(unittest.TestCase):
    """One small tree for all tests of a class, because building it takes seconds."""

    @classmethod
    def setUpClass(cls):
        cls.root = pathlib.Path(tempfile.mkdtemp(prefix="stage test ")).resolve()
        for name in ("src/programs", "cmake", "course/commands", "tools", "elsewhere"):
            (cls.root / name).mkdir(parents=True)
        for name in "stage", "course/__main__.py":
            shutil.copy2(REPOSITORY / name, cls.root / name)
        (cls.root / "CMakeLists.txt").write_text(CMAKE)
        (cls.root / "CMakePresets.json").write_text(PRESETS)
        (cls.root / "src" / "CMakeLists.txt").write_text(
            "foreach(program IN ITEMS storyteller stagecraft)\n"
            "  add_executable(${program} programs/story.cpp)\nendforeach()\n"
            "add_custom_target(other)\n")
        cls.source = cls.root / "src" / "programs" / "story.cpp"
        cls.source.write_text(PROGRAM.replace("MARK", "first"))
        (cls.root / "src" / "programs" / "info.cpp").write_text("")

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.root)

    def stage(self, *arguments, cwd=None, script=None, env=None, **options):
        environment = dict(os.environ, CI="", **(env or {}))
        return subprocess.run([str(script or self.root / "stage"), *arguments], text=True,
                              cwd=cwd or self.root, env=environment, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120, **options)


    def on_a_terminal(self, *words, **more):
        """The output of a command on a terminal of 50 columns."""
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 50, 0, 0))
        environment = {key: value for key, value in os.environ.items() if key != "COLUMNS"}
        with subprocess.Popen([str(self.root / "stage"), *words], env=dict(environment, NO_COLOR="1", **more),
                              stdin=theirs, stdout=theirs, stderr=theirs) as child:
            os.close(theirs)
            said = b""
            with contextlib.suppress(OSError):  # raised at its end
                while more := os.read(ours, 4096):
                    said += more
        os.close(ours)
        self.code = child.returncode
        return said.decode().splitlines()

    @contextlib.contextmanager
    def pager(self):
        """An environment in which less prints that it ran."""
        with tempfile.TemporaryDirectory() as folder:
            pager = pathlib.Path(folder) / "less"
            pager.write_text("#!/bin/sh\necho paged; exec cat\n")
            pager.chmod(0o755)
            yield {"TERM": "xterm", "PATH": f"{folder}:{os.environ['PATH']}"}


class Environment(Tree):
    def test_of_commands_is_in_english_and_names_no_repository(self):
        tool = self.root / "tools" / "models.py"
        tool.write_text("import os\nprint(*(os.environ.get(name) for name in "
                        "('STAGECRAFT_LANG', 'LC_ALL', 'LC_MESSAGES', 'GIT_DIR', 'GIT_INDEX_FILE')))\n")
        self.addCleanup(tool.unlink)
        env = {"STAGECRAFT_LANG": "", "LC_ALL": "zh_CN.UTF-8", "GIT_DIR": "/x/.git", "GIT_INDEX_FILE": "/x/.git/index"}
        self.assertEqual(self.stage("models", env=env).stdout, "zh_CN.UTF-8 None C None None\n")


class Help(Tree):
    def test_needs_no_build_and_lists_only_what_exists(self):
        answer = self.stage("help")
        self.assertEqual(answer.returncode, 0)
        self.assertFalse((self.root / "build").exists())
        self.assertIn("\nRun\n  story", answer.stdout)
        self.assertIn("\nLook inside\n  info", answer.stdout)
        self.assertNotIn("chat", answer.stdout)
        self.assertNotIn("Teach", answer.stdout)
        self.assertNotIn("\033", answer.stdout)

    def test_speaks_chinese_in_lines_of_a_terminal(self):
        answer = self.stage("help", script=REPOSITORY / "stage", env={"STAGECRAFT_LANG": "zh"})
        self.assertIn("\n运行\n  story", answer.stdout)
        self.assertNotIn("|", answer.stdout)
        for line in answer.stdout.splitlines():
            wide = sum(unicodedata.east_asian_width(letter) in "WF" for letter in line)
            self.assertLessEqual(len(line) + wide, 80, line)

    def test_speaks_the_language_of_its_course_json(self):
        settings = self.root / "course.json"
        settings.write_text('{\n "language": "zh"\n}\n')
        self.addCleanup(settings.unlink)
        for env, chinese in ({"STAGECRAFT_LANG": "", "LANG": "C"}, True), ({"STAGECRAFT_LANG": "en"}, False):
            self.assertEqual("\n运行\n" in self.stage("help", env=env).stdout, chinese, env)

    @unittest.skipUnless(has_pseudo_terminals(), "a bare chroot has none (no /dev/pts)")
    def test_goes_through_a_pager_on_a_terminal(self):
        with self.pager() as environment:
            lines = self.on_a_terminal("help", **environment)
        self.assertEqual(lines[0], "paged")
        self.assertIn("Run", lines)

    @unittest.skipUnless(has_pseudo_terminals(), "a bare chroot has none (no /dev/pts)")
    def test_fits_the_terminal_and_breaks_between_words(self):
        lines = self.on_a_terminal("help", TERM="dumb")  # without a pager
        self.assertLessEqual(max(map(len, lines)), 50, lines)
        self.assertEqual(" ".join(" ".join(lines).split()), " ".join(self.stage("help").stdout.split()))
        first = lines.index("  story       tell a story, or continue yours:")
        self.assertTrue(lines[first + 1].startswith(" " * 14 + "./"))

    def test_is_what_no_command_shows_where_there_is_no_course(self):
        self.assertEqual(self.stage().stdout, self.stage("--help").stdout)

    def test_no_command_says_where_i_am(self):
        where = self.root / "course" / "commands" / "where.py"
        where.write_text("import sys\nprint('here', sys.argv[1:])\n")
        self.addCleanup(where.unlink)
        self.assertEqual(self.stage().stdout, "here []\n")
        self.assertIn("usage", self.stage("--help").stdout)

    def test_unknown_command_is_one_line_and_exit_2(self):
        answer = self.stage("stroy")
        self.assertEqual((answer.returncode, answer.stdout), (2, ""))
        self.assertEqual(answer.stderr.count("\n"), 1)
        self.assertIn("did you mean 'story'?", answer.stderr)

    def test_no_suggestion_where_nothing_is_near(self):
        for word in ("quantize", "*", "", "Run", "a|b", "story\nchat"):
            answer = self.stage(word) if word else self.stage("--")
            self.assertEqual(answer.returncode, 2, word)
            self.assertNotIn("did you mean", answer.stderr)

    def test_a_command_not_yet_in_the_tree_is_unknown(self):
        self.assertEqual(self.stage("chat").returncode, 2)


class Run(Tree):
    def test_arguments_reach_the_program_as_they_were_typed(self):
        words = ["story", "0", "two words", "new\nline", "", "*", "$HOME", "a'b\"c", "-n", "--", "--yes"]
        answer = self.stage(*words)
        self.assertEqual(answer.stdout, "".join(f"<{word}>" for word in words) + "first")

    @unittest.skipUnless(has_pseudo_terminals(), "a bare chroot has none (no /dev/pts)")
    def test_what_is_read_goes_through_a_pager_on_a_terminal(self):
        self.stage("story")  # builds it
        with self.pager() as environment:
            self.assertIn("<story>", "".join(self.on_a_terminal("story", "3", **environment)))
            self.assertEqual(self.code, 3)
            for words in ("info", "3"), ("story", "3", "--help"):
                lines = self.on_a_terminal(*words, **environment)
                self.assertIn("paged", lines[0])
                self.assertIn("".join(f"<{word}>" for word in words), "".join(lines))
                self.assertEqual(self.code, 3, words)
            self.assertIn("first50", "".join(self.on_a_terminal("info", "columns", **environment)))
        self.assertNotIn("paged", "".join(self.on_a_terminal("info", "0", TERM="dumb")))

    @unittest.skipUnless(shutil.which("ccache"), "tests what is done about ccache")
    def test_a_home_that_cannot_be_written_stops_no_compilation(self):
        os.utime(self.source)
        answer = self.stage("story", env={"HOME": "/proc/none", "XDG_CACHE_HOME": "", "CCACHE_DIR": ""})
        self.assertEqual(answer.stdout, "<story>first", answer.stderr)
        self.assertIn("building", answer.stderr)

    def test_compiler_flags_of_the_shell_change_no_result_and_no_speed(self):
        shutil.rmtree(self.root / "build" / "release", ignore_errors=True)
        answer = self.stage("story", env={"CXXFLAGS": "-no-such-option", "LDFLAGS": "-no-such-option"})
        self.assertEqual(answer.stdout, "<story>first", answer.stderr)

    def test_yes_is_for_stage_itself(self):
        self.assertEqual(self.stage("--yes", "story").stdout, "<story>first")
        self.assertEqual(self.stage("story", "0", "--yes").stdout, "<story><0>first")

    def test_stdout_is_the_programs_alone_even_when_it_builds(self):
        os.utime(self.source)
        answer = self.stage("story")
        self.assertEqual(answer.stdout, "<story>first")
        self.assertIn("building", answer.stderr)

    def test_what_only_grades_does_without_the_program(self):
        program = self.root / "build" / "release" / "src" / "stagecraft"
        self.stage("build")
        program.unlink()
        self.assertEqual(self.stage("build", "--only", "other").returncode, 0)
        self.assertFalse(program.exists())
        self.assertEqual(self.stage("build", "--only", "no_such_target").returncode, 1)
        self.assertEqual(self.stage("story").stdout, "<story>first")

    def test_packages_explains_itself_and_takes_no_option_for_a_name(self):
        answer = self.stage("packages", "--help")
        self.assertEqual(answer.returncode, 0)
        self.assertIn("usage: ./stage packages [NAME...]", answer.stdout)
        answer = self.stage("packages", "--download-only")
        self.assertEqual(answer.returncode, 2)
        self.assertIn("'--download-only' is not the name of a package", answer.stderr)

    def test_the_first_story_comes_from_a_smaller_program(self):
        folder = self.root / "build" / "release" / "src"
        shutil.rmtree(self.root / "build", ignore_errors=True)
        self.assertEqual(self.stage("story").stdout, "<story>first")
        self.assertTrue((folder / "storyteller").exists())
        self.assertFalse((folder / "stagecraft").exists())
        self.assertEqual(self.stage("story").stderr, "")
        self.source.write_text(PROGRAM.replace("MARK", "second"))
        self.assertEqual(self.stage("story").stdout, "<story>second")
        self.assertFalse((folder / "stagecraft").exists())
        self.assertIn("building", self.stage("info").stderr)  # other commands need the whole program
        (folder / "storyteller").unlink()
        self.assertEqual(self.stage("story").stdout, "<story>second")
        self.assertFalse((folder / "storyteller").exists())
        self.source.write_text(PROGRAM.replace("MARK", "first"))
        self.assertEqual(self.stage("story").stdout, "<story>first")

    def test_other_models_and_grammars_need_the_whole_program(self):
        shutil.rmtree(self.root / "build", ignore_errors=True)
        for arguments in (["-m", "folder"], ["-mfolder"], ["--model=folder"], ["-im", "folder"], ["--grammar", "file"],
                          ["--json-schema=file"]):
            with self.subTest(arguments):
                self.assertEqual(self.stage("story", *arguments).returncode, 0)
                self.assertFalse((self.root / "build" / "release" / "src" / "storyteller").exists())
                shutil.rmtree(self.root / "build")
        self.assertEqual(self.stage("story", "--seed", "1", "-n5", "A mouse").returncode, 0)
        self.assertTrue((self.root / "build" / "release" / "src" / "storyteller").exists())

    def test_kernels_are_chosen_from_those_of_the_whole_program(self):
        shutil.rmtree(self.root / "build", ignore_errors=True)
        self.assertEqual(self.stage("story", env={"STAGECRAFT_ISA": "avx2"}).stdout, "<story>first")
        self.assertFalse((self.root / "build" / "release" / "src" / "storyteller").exists())

    def test_second_call_says_nothing_of_its_own(self):
        self.stage("story")
        self.assertEqual(self.stage("story").stderr, "")

    def test_exit_codes_pass_through(self):
        for code in (1, 2, 77):
            self.assertEqual(self.stage("story", str(code)).returncode, code)

    def test_bench_passes_on_a_value_that_is_called_bench(self):
        (self.root / "src" / "programs" / "bench.cpp").write_text("")
        for path in ("course/commands/bench.py", "tools/against.py"):
            (self.root / path).write_text("import sys; print(*sys.argv[1:])")
        for option in "--mine", "--against":
            self.assertEqual(self.stage("bench", "-m", "bench", option, "9").stdout, f"-m bench {option} 9\n")

    def test_with_mine_names_the_program_that_would_run_without_it(self):
        (self.root / "course/commands/mine.py").write_text("import os; print(os.environ['STAGE_PROGRAM'])")
        first, whole = (self.root / "build" / "release" / "src" / name for name in ("storyteller", "stagecraft"))
        for path in first, whole:
            path.unlink(missing_ok=True)
        self.assertEqual(self.stage("story", "--mine", "1").stdout, "storyteller\n")
        self.assertEqual(self.stage("story", "--mine", "1", "--model", "x").stdout, "stagecraft\n")
        self.assertEqual(self.stage("story").returncode, 0)
        self.assertEqual(self.stage("story", "--mine").stdout, "storyteller\n")
        self.assertEqual(self.stage("build").returncode, 0)
        self.assertEqual(self.stage("story", "--mine").stdout, "stagecraft\n")

    def test_runs_where_the_user_is(self):
        elsewhere = self.root / "elsewhere"
        for script in ("../stage", str(self.root / "stage")):
            answer = self.stage("story", "home", cwd=elsewhere, script=script)
            self.assertEqual(answer.stdout, f"<story><home>first{self.root}")

    def test_runs_through_a_link_and_with_CDPATH(self):
        link = self.root / "elsewhere" / "link"
        link.symlink_to("../stage")
        answer = self.stage("story", "home", cwd="/", script=link, env={"CDPATH": str(self.root)})
        self.assertEqual(answer.stdout, f"<story><home>first{self.root}")
        link.unlink()

    def test_ctrl_c_reaches_the_program(self):
        self.stage("story")
        running = subprocess.Popen([str(self.root / "stage"), "story", "wait"],
                                   stdout=subprocess.PIPE, start_new_session=True)
        self.assertEqual(running.stdout.read(1), b"<")
        os.killpg(running.pid, signal.SIGINT)
        self.assertEqual(running.wait(10), -signal.SIGINT)
        running.stdout.close()


APT = r"""#!/bin/sh
# Stands in for apt-get: notes how it was called; what is installed appears on the PATH.
echo "$*" >>"$LOG"
case "$*" in
  *"-s -qq"*) [ -e "$LOG.updated" ] ;;
  *update*) : >"$LOG.updated" ;;
  *install*) for tool in ninja ccache; do ln -sf "$REAL/$tool" "$BIN/$tool"; done ;;
esac
"""


@unittest.skipUnless(sys.platform == "linux", "apt")
class Packages(Tree):
    """With a PATH without Ninja and ccache, and with a fake apt-get."""

    LINE = "apt-get install -y --no-install-recommends ninja-build ccache"

    def setUp(self):
        shutil.rmtree(self.root / "build", ignore_errors=True)
        self.bin = pathlib.Path(tempfile.mkdtemp(dir=self.root))
        self.log = self.bin / "apt.log"
        self.log.write_text("")
        real = self.bin / "real"
        real.mkdir()
        for tool in ("ninja", "ccache"):
            (real / tool).symlink_to(shutil.which(tool) or "/bin/true")
        for tool in ("bash sh env cat sed find awk mkdir rm mv ln touch readlink uname flock tail cmake "
                     "c++ g++ cc as ld ar ranlib pkg-config python3 dpkg-query git").split():
            if shutil.which(tool):
                (self.bin / tool).symlink_to(shutil.which(tool))
        self.put("apt-get", APT)
        self.be("0")

    def put(self, name, text):
        (self.bin / name).write_text(text)
        (self.bin / name).chmod(0o755)

    def be(self, user):
        self.put("id", f"#!/bin/sh\ncase $1 in -u) echo {user} ;; *) echo users ;; esac\n")

    def environment(self, **more):
        return dict({"PATH": str(self.bin), "LOG": str(self.log), "BIN": str(self.bin),
                     "REAL": str(self.bin / "real")}, **more)

    def test_root_without_a_terminal_sees_the_line_and_goes_on(self):
        answer = self.stage("story", env=self.environment())
        self.assertEqual((answer.returncode, answer.stdout), (0, "<story>first"), answer.stderr)
        self.assertIn(f"\n  {self.LINE}\n", answer.stderr)
        calls = self.log.read_text().splitlines()
        self.assertEqual(len(calls), 3, calls)  # it looked, fetched the missing lists, installed
        self.assertIn("update", calls[1])
        self.assertTrue(calls[2].endswith("install -y --no-install-recommends ninja-build ccache"))

    def test_lists_that_are_there_are_not_fetched(self):
        pathlib.Path(f"{self.log}.updated").touch()
        self.assertEqual(self.stage("story", env=self.environment()).returncode, 0)
        self.assertNotIn("update", self.log.read_text())

    def test_without_root_the_administrator_gets_the_line_and_the_user_a_reason(self):
        self.be("1000")
        answer = self.stage("--yes", "story", env=self.environment())
        self.assertEqual((answer.returncode, answer.stdout), (1, ""))
        self.assertIn("administrator", answer.stderr)
        self.assertIn(f"  sudo {self.LINE}\n", answer.stderr)
        self.assertIn("cannot build without: ninja", answer.stderr)
        self.assertEqual(self.log.read_text(), "")

    def test_without_root_it_builds_with_what_is_there(self):
        self.be("1000")
        (self.bin / "ninja").symlink_to(self.bin / "real" / "ninja")
        answer = self.stage("story", env=self.environment())
        self.assertEqual(answer.stdout, "<story>first", answer.stderr)
        self.assertIn("no-install-recommends ccache\n", answer.stderr)

    def test_a_sudo_that_asks_nothing_is_used(self):
        self.be("1000")
        self.put("sudo", '#!/bin/sh\n[ "$1" = -n ] && shift\nexec "$@"\n')
        (self.bin / "true").symlink_to("/bin/true")
        self.assertEqual(self.stage("story", env=self.environment()).stdout, "<story>first")

    def test_other_package_managers_install_too(self):
        for manager, line in (("dnf", "dnf install -y ninja-build ccache"),
                              ("pacman", "pacman -S --needed --noconfirm ninja ccache")):
            with self.subTest(manager):
                self.setUp()
                (self.bin / "apt-get").unlink()
                self.put(manager, f'#!/bin/sh\necho "${{0##*/}} $*" >>"$LOG"; ln -s "$REAL"/* "$BIN"\n')
                answer = self.stage("story", env=self.environment())
                self.assertEqual(answer.stdout, "<story>first", answer.stderr)
                self.assertEqual(self.log.read_text(), line + "\n")
                self.assertIn(f"  {line}\n", answer.stderr)

    def test_without_a_package_manager_it_says_what_to_do(self):
        (self.bin / "apt-get").unlink()
        answer = self.stage("story", env=self.environment())
        self.assertIn("run the same ./stage command again", answer.stderr)
        self.assertNotIn("this installs them", answer.stderr)

    def test_without_flock_a_second_build_waits(self):
        for tool in ("ninja", "ccache"):
            (self.bin / tool).symlink_to(self.bin / "real" / tool)
        (self.bin / "flock").unlink()
        (self.root / "build").mkdir()
        with (self.root / "build" / ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            with subprocess.Popen([str(self.root / "stage"), "build", "--only", "other"], stderr=subprocess.PIPE,
                                  stdin=subprocess.DEVNULL, env=self.environment(CI="1"), text=True) as running:
                said = running.stderr.readline()
                time.sleep(0.2)
                code = running.poll()
                fcntl.flock(lock, fcntl.LOCK_UN)
                running.communicate(timeout=60)
        self.assertIn("waiting for another", said)
        self.assertEqual((code, running.returncode), (None, 0))

    @unittest.skipUnless(has_pseudo_terminals(), "a bare chroot has none (no /dev/pts)")
    def test_on_a_terminal_it_waits_for_enter(self):
        for ci, waits in (("", True), ("true", False)):
            with self.subTest(ci=ci):
                self.tearDown()
                self.setUp()
                ours, theirs = pty.openpty()
                running = subprocess.Popen(
                    [str(self.root / "stage"), "story"], stdin=theirs, stderr=theirs,
                    stdout=subprocess.PIPE, env=dict(os.environ, **self.environment(CI=ci)))
                os.close(theirs)
                if waits:
                    seen = b""
                    while b"Press Enter" not in seen:
                        seen += os.read(ours, 4096)
                    time.sleep(0.3)
                    self.assertIsNone(running.poll())
                    self.assertEqual(self.log.read_text(), "")
                    os.write(ours, b"\n")
                self.drain(ours)
                self.assertEqual(running.communicate(timeout=60)[0], b"<story>first")
                self.assertIn("ninja-build ccache", self.log.read_text())

    def drain(self, terminal):
        try:
            while os.read(terminal, 4096):
                pass
        except OSError:
            os.close(terminal)


@unittest.skipUnless(has_pseudo_terminals(), "no pseudo terminals")
class FirstBuild(Tree):
    def on_a_terminal(self):
        """(stdout, what the terminal showed of stderr)"""
        ours, theirs = pty.openpty()
        running = subprocess.Popen([str(self.root / "stage"), "story"], stdin=subprocess.DEVNULL, stderr=theirs,
                                   stdout=subprocess.PIPE, text=True, env=dict(os.environ, CI="true"))
        os.close(theirs)
        seen = b""
        try:
            while more := os.read(ours, 4096):
                seen += more
        except OSError:
            os.close(ours)
        return running.communicate(timeout=60)[0], seen.decode()

    def test_shows_the_map_of_the_model_once_and_never_on_stdout(self):
        (self.root / "course" / "commands" / "tour.py").write_text("import sys\nprint('the map', *sys.argv[1:])\n")
        self.assertIn("the map --summary", self.on_a_terminal()[1])
        os.utime(self.source)
        out, seen = self.on_a_terminal()
        self.assertEqual(out, "<story>first")
        self.assertIn("building", seen)
        self.assertNotIn("the map", seen)


class Stale(Tree):
    """An old binary must never run for a new tree."""

    def says(self):
        answer = self.stage("story")
        self.assertEqual(answer.returncode, 0, answer.stderr)
        return answer.stdout.replace("<story>", "")

    def test_never_runs_an_old_program(self):
        self.assertEqual(self.says(), "first")
        kept = self.root / "kept.cpp"
        shutil.copy2(self.source, kept)

        with self.subTest("edited"):
            self.source.write_text(PROGRAM.replace("MARK", "second"))
            self.assertEqual(self.says(), "second")
        with self.subTest("put back with its old date"):
            time.sleep(0.05)
            shutil.move(kept, self.source)
            self.assertEqual(self.says(), "first")
        with self.subTest("a build file changed"):
            (self.root / "src" / "CMakeLists.txt").write_text(
                "add_executable(storyteller programs/story.cpp)\n"
                "target_compile_definitions(storyteller PRIVATE story=story)\nadd_compile_options(-g)\n")
            self.assertIn("building", self.stage("story").stderr)
        with self.subTest("a source that does not compile"):
            self.source.write_text("int main() { return missing; }\n")
            answer = self.stage("story")
            self.assertEqual((answer.returncode, answer.stdout), (1, ""))
            self.assertIn("missing", answer.stderr)
            self.assertEqual(self.stage("story").returncode, 1)
        with self.subTest("mended"):
            self.source.write_text(PROGRAM.replace("MARK", "third"))
            self.assertEqual(self.says(), "third")
        with self.subTest("a warning about a student's file is shown, one about ours is not"):
            for folder in ("stages/01-one", "src/operators"):
                (self.root / folder).mkdir(parents=True)
                (self.root / folder / "one.cpp").write_text(f"int {folder[:3]}() {{ int nobody_reads; return 1; }}\n")
            (self.root / "src" / "CMakeLists.txt").write_text(
                "add_executable(storyteller programs/story.cpp ../stages/01-one/one.cpp operators/one.cpp)\n"
                "target_compile_options(storyteller PRIVATE -Wall)\n")
            told = self.stage("story").stderr
            self.assertRegex(told, r"stages/01-one/one.cpp:1:\d+: warning: .*nobody_reads")
            self.assertNotIn("operators/one.cpp", told)
        with self.subTest("a student's file put back with its old date is compiled again"):
            mine, aside = self.root / "stages" / "01-one" / "one.cpp", self.root / "aside.cpp"
            mine.rename(aside)
            mine.write_text("int stage() { return 2; }\n")
            self.stage("build", "--only", "storyteller")
            time.sleep(0.05)
            aside.rename(mine)
            self.assertIn("nobody_reads", self.stage("build", "--only", "storyteller").stderr)
        with self.subTest("the same after builds that failed"):
            self.source.write_text("int main() { return missing; }\n")
            mine.write_text("int stage() { int nobody_reads; return 3; }\n")
            mine.rename(aside)
            mine.write_text("int stage() { return 4; }\n")
            self.assertEqual(self.stage("story").returncode, 1)
            time.sleep(0.05)
            aside.rename(mine)
            self.assertIn("nobody_reads", self.stage("story").stderr)
            self.source.write_text(PROGRAM.replace("MARK", "third"))
        with self.subTest("the whole tree moved"):
            moved = self.root.with_name(self.root.name + " moved")
            self.root.rename(moved)
            type(self).root = moved
            answer = self.stage("story", "home")
            self.assertEqual(answer.stdout, f"<story><home>third{moved}")


if __name__ == "__main__":
    unittest.main()
