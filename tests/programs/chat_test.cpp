#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <regex>

#include "generation/chat_session.h"
#include "tests/support/engines.h"
#include "tests/support/pseudo_terminal.h"
#include "tests/support/run_program.h"
#include "tests/support/tiny_chat_model.h"

namespace stagecraft {
namespace {

class ChatCommand : public testing::Test {
 protected:
  ProgramResult chat(std::vector<std::string> arguments, const std::string& input = "") {
    arguments.insert(arguments.begin(), {"chat", "--model", files_.folder().string(), "-t", "1",
                                         "--temperature", "0", "-n", "12"});
    return run_program(arguments, input);
  }

  // The expected stdout after these questions, one after the other.
  std::string answers(const std::vector<std::string>& questions, const std::string& system = "") {
    Engine model = textbook_engine(files_.folder());
    const Tokenizer tokenizer = Tokenizer::open(files_.folder());
    ChatSession session(model, tokenizer, chatml_format(tokenizer), 512);
    if (!system.empty()) session.conversation().system = system;
    TextOptions options;
    options.generation.max_tokens = 12;
    options.generation.end_tokens = model.plan().eos_ids;
    options.generation.sampler.temperature = 0.0f;
    Random random(0);
    std::string out;
    for (const std::string& question : questions) {
      session.say(question, options, random, {[](std::string_view) { return true; }});
      const std::string& answer = session.conversation().exchanges.back().answer;
      out += answer + (answer.ends_with('\n') ? "" : "\n");
    }
    return out;
  }

  static void expect_one_line(const std::string& text, const std::string& part) {
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1) << text;
    EXPECT_NE(text.find(part), std::string::npos) << text;
  }

  TinyChatModel files_;
  TemporaryFolder folder_;
};

TEST_F(ChatCommand, DrawsNewRandomNumbersForEachAnswerAlsoWithAGrammar) {
  const std::string grammar =
      folder_.write("letters.gbnf", "root ::= [a-z] [a-z] [a-z]\n").string();
  const ProgramResult result =
      run_program({"chat", "--model", files_.folder().string(), "--grammar", grammar,
                   "--temperature", "5", "--seed", "3"},
                  "hello\n/retry\n/retry\n");
  ASSERT_EQ(result.code, 0) << result.err;
  ASSERT_EQ(result.out.size(), 12u) << result.out;  // three lines
  EXPECT_NE(result.out.substr(0, 4), result.out.substr(4, 4));
  EXPECT_NE(result.out.substr(4, 4), result.out.substr(8, 4));
}

TEST_F(ChatCommand, SaysOnceThatItGoesBeyondWhatTheModelWasTrainedFor) {
  const std::string note = "note: the model was trained for 512 tokens";
  const ProgramResult result = chat({"--context", "600"}, "hello\nthe end\n");
  EXPECT_EQ(result.code, 0);
  EXPECT_TRUE(result.err.starts_with(note)) << result.err;
  EXPECT_EQ(result.err.rfind(note), 0u);
  EXPECT_EQ(chat({"--context", "512"}, "hello\n").err.find(note), std::string::npos);
}

TEST_F(ChatCommand, TakesEachLineOfAPipeAsATurn) {
  const ProgramResult result = chat({}, "hello\nthe user\nhell\n");
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(result.out, answers({"hello", "the user", "hell"}));
  EXPECT_EQ(result.err.find('\033'), std::string::npos);
  EXPECT_NE(result.err.find("[3 answers: "), std::string::npos) << result.err;
}

TEST_F(ChatCommand, TakesTheLastLineWithoutItsNewlineAndLinesOfWindows) {
  EXPECT_EQ(chat({}, "hello\r\n\n  \nthe user").out, answers({"hello", "the user"}));
}

TEST_F(ChatCommand, AnswersOneQuestion) {
  const ProgramResult result = chat({"hello"}, "not read");
  EXPECT_EQ(result.code, 0);
  EXPECT_EQ(result.out, answers({"hello"}));
  EXPECT_EQ(chat({"/quit"}).out, answers({"/quit"}));  // a question, not a command
}

TEST_F(ChatCommand, SaysSoWhereStdoutCannotBeWritten) {
  const ProgramResult result = run_program(
      {"chat", "hello", "--model", files_.folder().string(), "-n", "3"}, "", "", "/dev/full");
  EXPECT_EQ(result.code, 1);
  expect_one_line(result.err, "stagecraft: stdout: cannot be written: No space left on device");
}

TEST_F(ChatCommand, GivesTheModelASystemPrompt) {
  const std::string expected = answers({"hello"}, "the user");
  EXPECT_NE(expected, answers({"hello"}));
  EXPECT_EQ(chat({"--system", "the user", "hello"}).out, expected);
  EXPECT_EQ(chat({}, "/system the user\nhello\n").out, expected);
  EXPECT_EQ(chat({"--system", "the user"}, "/system\nhello\n").out, answers({"hello"}));
}

TEST_F(ChatCommand, TalksAsTheTemplateSays) {
  const std::string plain = answers({"hello"});
  const std::string zephyr = chat({"--chat-template", "zephyr", "hello"}).out;
  EXPECT_NE(zephyr, plain);
  EXPECT_EQ(chat({"--chat-template", "chatml", "hello"}).out, plain);
  write_file(files_.folder() / "chat_template.jinja",
             "{% for m in messages %}<|{{ m.role }}|>\n{{ m.content }}</s>\n{% endfor %}"
             "{% if add_generation_prompt %}{{ '<|assistant|>\n' }}{% endif %}");
  EXPECT_EQ(chat({"hello"}).out, zephyr);
  EXPECT_EQ(chat({"--chat-template", "chatml", "hello"}).out, plain);
  const std::string bad = folder_.file("bad.jinja");
  write_file(bad, "{% if %}");
  const ProgramResult refused = chat({"--chat-template", bad, "hello"});
  EXPECT_EQ(refused.code, 1);
  expect_one_line(refused.err, "bad.jinja: line 1: expected an expression, found '%}'");
  EXPECT_EQ(chat({"--chat-template", "", "hello"}).code, 2);
}

TEST_F(ChatCommand, GivesVariablesToTheTemplate) {
  const std::string loud =
      folder_
          .write("loud.jinja",
                 "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}"
                 "{% if loud %}!!!{% endif %}<|im_end|>\n{% endfor %}"
                 "<|im_start|>assistant{{ '\n' }}")
          .string();
  const auto answer = [&](const std::string& variables) {
    return chat({"--chat-template", loud, "--chat-template-kwargs", variables, "hello"}).out;
  };
  EXPECT_EQ(answer(R"({"loud": false})"), answers({"hello"}));
  EXPECT_EQ(answer(R"({"loud": true})"), answers({"hello!!!"}));
  EXPECT_NE(answers({"hello"}), answers({"hello!!!"}));
  const auto refused = [&](const std::string& variables) {
    return chat({"--chat-template", loud, "--chat-template-kwargs", variables, "hello"}).err;
  };
  expect_one_line(refused(R"({"lout": true})"),
                  "--chat-template-kwargs: lout: expected a variable of the chat template, found "
                  "none");
  expect_one_line(refused(R"({"messages": []})"),
                  "--chat-template-kwargs: messages: expected no variable");
  expect_one_line(refused("loud"), "--chat-template-kwargs: ");
}

TEST_F(ChatCommand, SaysThatStdinCannotBeRead) {
  const std::string command =
      fmt::format("{} chat --model {} -t 1 </ 2>{}", shell_quoted(PROGRAM),
                  shell_quoted(files_.folder().string()), shell_quoted(folder_.file("err")));
  const int status = std::system(command.c_str());
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 1);
  expect_one_line(read_file(folder_.file("err")), "stdin: cannot be read");
}

TEST_F(ChatCommand, TakesSeveralLinesBetweenTripleQuotes) {
  EXPECT_EQ(chat({}, "\"\"\"hello\n\nthe user\"\"\"\nhell\n").out,
            answers({"hello\n\nthe user", "hell"}));
  EXPECT_EQ(chat({}, "\"\"\"\nhello\n/reset\n\"\"\"\n").out, answers({"hello\n/reset"}));
  EXPECT_EQ(chat({}, "\"\"\"/quit\"\"\"\n\"\"\"never closed").out,
            answers({"/quit", "never closed"}));
  EXPECT_EQ(chat({}, "\"\"\"\n\"\"\"\n\"\"\"\"\"\"\n").out, "");
}

TEST_F(ChatCommand, ReportsABlockThatIsNoUtf8OnceAndGoesOnAfterIt) {
  for (const std::string& block : {std::string("\"\"\"one\ncaf\xe9\nthr\xe9\xe9\n\"\"\"\n"),
                                   std::string("\"\"\"one\ncaf\xe9 \"\"\"\n")}) {
    const ProgramResult result = chat({}, block + "hello\n");
    EXPECT_EQ(result.out, answers({"hello"})) << block;
    EXPECT_EQ(result.code, 1);
    expect_one_line(result.err.substr(0, result.err.rfind('[')),
                    "stdin, line 2: expected UTF-8, found the byte 0xe9 at offset 3");
  }
  const ProgramResult result = chat({}, "\"\"\"\xe9\ntwo\n\"\"\"\nhello\n");
  EXPECT_EQ(result.out, answers({"hello"}));
  expect_one_line(result.err.substr(0, result.err.rfind('[')), "stdin, line 1: expected UTF-8");
}

TEST_F(ChatCommand, UndoesRetriesAndResets) {
  const std::string hello = answers({"hello"});
  EXPECT_EQ(chat({}, "hello\n/undo\nhello\n").out, hello + hello);
  EXPECT_EQ(chat({}, "hello\n/retry\n").out, hello + hello);  // greedy: the same answer again
  EXPECT_EQ(chat({}, "hell\nthe user\n/reset\nhello\n").out, answers({"hell", "the user"}) + hello);
  EXPECT_EQ(chat({}, "hello\n/quit\nhello\n").out, hello);
}

TEST_F(ChatCommand, KeepsAConversationInAFile) {
  const std::string file = folder_.file("talk.json");
  const std::string all = answers({"hello", "the user"});
  EXPECT_EQ(chat({"--system", "s"}, "hello\n/save " + file + "\n").code, 0);
  const Conversation saved = parse_conversation(read_file(file), file);
  EXPECT_EQ(saved.system, "s");
  ASSERT_EQ(saved.exchanges.size(), 1u);
  EXPECT_EQ(saved.exchanges[0].question, "hello");
  EXPECT_EQ(chat({}, "hello\n/save " + file + "\n/reset\n/load " + file + "\nthe user\n").out, all);
}

TEST_F(ChatCommand, SaysWhatIsWrongAndGoesOnWithTheNextLine) {
  const std::string bad = folder_.file("bad.json");
  write_file(bad, R"({"messages": [{"role": "user", "content": "hi"}]})");
  const std::string fifo = folder_.file("fifo");
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  const std::string hello = answers({"hello"});
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"/bogus\x1b[2J 1", "stagecraft: /bogus\\x1b[2J: no such command"},
      {"caf\xe9", "stagecraft: stdin, line 1: expected UTF-8, found the byte 0xe9 at offset 3"},
      {std::string(600, 'x'), "expected at most 512 tokens (the context), found "},
      {"/undo", "nothing to take back"},
      {"/reset now", "stagecraft: /reset: expected nothing after it, found 'now'"},
      {"/retry", "no answer to repeat"},
      {"/save", "/save: expected the name of a file"},
      {"/load", "/load: expected the name of a file"},
      {"/save " + folder_.file("no/such/folder"), ": cannot be written: No such file or directory"},
      {"/save " + fifo, "fifo: expected a regular file, found a FIFO"},
      {"/save " + files_.folder().string() + "/model.safetensors",
       "model.safetensors: expected a file that does not belong to the model, found a file of "},
      {"/load " + folder_.file("missing.json"), "missing.json"},
      {"/load " + folder_.path().string(), "stagecraft: " + folder_.path().string()},
      {"/load " + bad, "bad.json: expected an answer"},
  };
  for (const auto& [line, expected] : cases) {
    const ProgramResult result = chat({}, line + "\nhello\n");
    EXPECT_EQ(result.out, hello) << line;
    EXPECT_EQ(result.code, 1) << line;
    expect_one_line(result.err.substr(0, result.err.rfind('[')), expected);
  }
}

TEST_F(ChatCommand, RefusesWhatItCannotAnswer) {
  const TinyChatModel story({.chat_tokens = false});
  const auto expect = [](const ProgramResult& result, int code, const std::string& part) {
    EXPECT_EQ(result.code, code);
    EXPECT_EQ(result.out, "");
    expect_one_line(result.err, part);
  };
  expect(run_program({"chat", "--model", story.folder(), "hello"}), 1, "<|im_start|>");
  expect(run_program({"chat", "--model", folder_.file("none"), "hello"}), 1, "none");
  expect(chat({"caf\xe9"}), 2, "question: expected UTF-8");
  expect(chat({"--system", "\xff", "hello"}), 2, "--system: expected UTF-8");
  expect(chat({""}), 2, "question: expected some text");
  expect(chat({std::string(600, 'x')}), 1, "expected at most 512 tokens (the context), found ");
  expect(chat({"--context", "0", "hello"}), 2, "--context");
  expect(chat({"--chat-template-kwargs", "", "hello"}), 2,
         "--chat-template-kwargs: expected a JSON object, found ''");
  expect(chat({"hello", "world"}), 2, "world");
}

TEST_F(ChatCommand, SaysWhenTheContextIsFullAndGoesOn) {
  const ProgramResult result = chat({"-c", "100"}, "hello\nthe user\nhell\nin hell\nthe end\n");
  EXPECT_EQ(result.code, 0);
  EXPECT_NE(result.err.find("[the context of 100 tokens is full: forgot the oldest "),
            std::string::npos)
      << result.err;
  EXPECT_GE(std::count(result.out.begin(), result.out.end(), '\n'), 5);
}

// A model that never ends an answer, used at a terminal.
class ChatAtATerminal : public testing::Test {
 protected:
  void SetUp() override {
    if (!PseudoTerminal::available()) GTEST_SKIP() << "this system gives no pseudo-terminals";
  }

  PseudoTerminal start(const std::vector<std::string>& more = {}) {
    std::vector<std::string> arguments = {"chat", "--model", files_.folder(), "-t", "1",
                                          "-c",   "20000",   "--seed",        "1"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return PseudoTerminal(PROGRAM, arguments, home_.path());
  }

  // Waits for an answer of one token, and for the next prompt.
  static void wait_for_answer(PseudoTerminal& terminal) {
    terminal.wait_for("[cut after 1 token");
    terminal.wait_for("> ");
  }

  // Saves the conversation at the next prompt, and leaves the program.
  Conversation saved_and_left(PseudoTerminal& terminal) const {
    const std::string file = home_.file("talk.json");
    terminal.wait_for("> ");
    terminal.type("/save " + file + "\r");
    terminal.wait_for("[saved to ");
    terminal.wait_for("> ");  // earlier, the terminal itself would read Ctrl-D
    terminal.type("\x04");
    EXPECT_EQ(terminal.wait_for_end(), 0);
    return parse_conversation(read_file(file), file);
  }

  TinyChatModel files_{{.endless = true}};
  TemporaryFolder home_;
};

TEST_F(ChatAtATerminal, LeavesWithCtrlCOrCtrlDOnAnEmptyLine) {
  for (const char* key : {"\x03", "\x04"}) {
    PseudoTerminal terminal = start();
    terminal.wait_for("> ");
    terminal.type(key);
    EXPECT_EQ(terminal.wait_for_end(), 0);
  }
}

TEST_F(ChatAtATerminal, PaintsNothingOnADumbOne) {
  for (const std::string kind : {"vt100", "dumb"}) {
    PseudoTerminal terminal(
        "/usr/bin/env", {"TERM=" + kind, "NO_COLOR=", PROGRAM, "chat", "--model", files_.folder()},
        home_.path());
    EXPECT_EQ(terminal.wait_for(">").find('\x1b') == std::string::npos, kind == "dumb") << kind;
  }
}

TEST_F(ChatAtATerminal, EndsTheBoldTextOfAPromptBeforeAnythingIsTyped) {
  PseudoTerminal terminal("/usr/bin/env",
                          {"NO_COLOR=", PROGRAM, "chat", "--model", files_.folder()}, home_.path());
  terminal.wait_for("\x1b[1m>");
  terminal.wait_for("\x1b[0m ");
  terminal.type("\x04");
  EXPECT_EQ(terminal.wait_for_end(), 0);
}

TEST_F(ChatAtATerminal, ClearsALineWithTextAtCtrlC) {
  PseudoTerminal terminal = start();
  terminal.wait_for("> ");
  terminal.type("/bogus");
  terminal.wait_for("/bogus");
  terminal.type("\x03");
  terminal.type("/undo\r");
  EXPECT_EQ(terminal.wait_for("nothing to take back").find("no such command"), std::string::npos);
  terminal.wait_for("> ");
  terminal.type("\x03");
  EXPECT_EQ(terminal.wait_for_end(), 0);
}

TEST_F(ChatAtATerminal, StopsAnAnswerAtCtrlCAndKeepsTheConversation) {
  PseudoTerminal terminal = start({"-n", "15000"});
  const std::string file = home_.file("talk.json");
  terminal.wait_for("> ");
  terminal.type("hello\r");
  terminal.wait_for("hello\r\n");
  ASSERT_FALSE(terminal.wait_for("e").empty());  // a part of the answer
  terminal.type("typed \x03");
  EXPECT_EQ(terminal.wait_for("[stopped]").find("typed"), std::string::npos);
  terminal.wait_for("> ");
  terminal.type("/save " + file + "\r");
  terminal.wait_for("[saved to ");
  terminal.wait_for("> ");
  terminal.type("/quit\r");
  EXPECT_EQ(terminal.wait_for_end(), 0);
  const Conversation saved = parse_conversation(read_file(file), file);
  ASSERT_EQ(saved.exchanges.size(), 1u);
  EXPECT_EQ(saved.exchanges[0].question, "hello");
  EXPECT_NE(saved.exchanges[0].answer.find('e'), std::string::npos);
}

// A loop of a shell must end, too.
TEST_F(ChatAtATerminal, CtrlCEndsTheProgramWhereOnlyOneQuestionWasAsked) {
  PseudoTerminal terminal = start({"-n", "15000", "hello"});
  ASSERT_FALSE(terminal.wait_for("e").empty());  // a part of the answer
  terminal.type("\x03");
  terminal.wait_for("[stopped]");
  EXPECT_EQ(terminal.wait_for_end(), -SIGINT);
}

TEST_F(ChatAtATerminal, RemembersLinesAndEditsThemCharacterByCharacter) {
  PseudoTerminal terminal = start({"-n", "1"});
  terminal.wait_for("> ");
  terminal.type("你好吗\x7f\r");  // deletes the last character, all three bytes
  wait_for_answer(terminal);
  terminal.type("\x1b[A!\r");  // arrow up: the same line, with one more character
  terminal.wait_for("[cut after 1 token");
  const Conversation saved = saved_and_left(terminal);
  ASSERT_EQ(saved.exchanges.size(), 2u);
  EXPECT_EQ(saved.exchanges[0].question, "你好");
  EXPECT_EQ(saved.exchanges[1].question, "你好!");
}

TEST_F(ChatAtATerminal, MovesByWordsAndPutsNoOtherKeyIntoTheLine) {
  const std::string word_back = "one Xtwo", end = "one twoX";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"\x1b[1;5D", word_back},  // Ctrl-Left
      {"\x1b[1;3D", word_back},  // Alt-Left
      {"\x1b\x1b[D", word_back},
      {"\x1b\x62", word_back},
      {"\x1bOd", word_back},
      {"\x1b[D", "one twXo"},
      {"\x1bOH", "Xone two"},
      {"\x1b[1;5H", "Xone two"},
      {"\x1b[1~\x1b[1;5C", "oneX two"},
      {"\x1b[H\x1b\x66", "oneX two"},
      {"\x1b[7~\x1b[3~", "Xne two"},
      {"\x1b[H\x1b[4~", end},
      {"\x1b[1;2F", end},  // Shift-End
      {"\x1b[5~", end},    // Page up
      {"\x1b[2~", end},    // Insert
      {"\x1b[15~", end},   // F5
      {"\x1b[24;6~", end},
      {"\x1bOP", end},  // F1
      {"\x1b[[A", end},
      {"\x1b[1;6A", end},
      {"\x1b[1;15P", end},
      {"\x1b[7^", end},
      {"\x1b[<0;3;4M", end},
  };
  PseudoTerminal terminal = start({"-n", "1"});
  for (const auto& [key, expected] : cases) {
    terminal.wait_for("> ");
    terminal.type("one two" + key + "X\r");
    terminal.wait_for("[cut after 1 token");
  }
  const Conversation saved = saved_and_left(terminal);
  ASSERT_EQ(saved.exchanges.size(), cases.size());
  for (std::size_t i = 0; i < cases.size(); ++i) {
    EXPECT_EQ(saved.exchanges[i].question, cases[i].second) << i;
  }
}

TEST_F(ChatAtATerminal, LetsAnEditrcBindAKeyThatDoesNothing) {
  write_file(home_.file(".editrc"), "bind ^[[5~ ed-move-to-beg\n");
  PseudoTerminal terminal = start({"-n", "1"});
  terminal.wait_for("> ");
  terminal.type("one two\x1b[5~X\r");
  terminal.wait_for("[cut after 1 token");
  const Conversation saved = saved_and_left(terminal);
  ASSERT_EQ(saved.exchanges.size(), 1u);
  EXPECT_EQ(saved.exchanges[0].question, "Xone two");
}

TEST_F(ChatAtATerminal, TakesAPastedTextOfSeveralLinesAsOneMessage) {
  PseudoTerminal terminal = start({"-n", "1"});
  const std::string paste = "\x1b[200~", end = "\x1b[201~";
  terminal.wait_for("\x1b[?2004h");
  terminal.wait_for("> ");
  // Keys and commands in a pasted text are text. A terminal sends its newlines as \r.
  terminal.type("see: " + paste + "/reset\r\tone\x1b\r\n\rtwo\r" + end);
  terminal.wait_for("two");
  terminal.type("!\r");
  terminal.wait_for("\x1b[?2004l");
  wait_for_answer(terminal);
  terminal.type("\x1b[A?\r");  // the same text, with one more character
  wait_for_answer(terminal);
  terminal.type(paste + "/reset\rthe user" + end + "\r");
  wait_for_answer(terminal);
  terminal.type(paste + "one\rtwo" + end + "\x03");  // Ctrl-C clears all its lines
  terminal.type(paste + "one line\r" + end + "\r");
  wait_for_answer(terminal);
  terminal.type(paste +
                "without an end\r\x03"
                "hello\r");
  terminal.wait_for("[cut after 1 token");
  const Conversation saved = saved_and_left(terminal);
  ASSERT_EQ(saved.exchanges.size(), 5u);
  EXPECT_EQ(saved.exchanges[0].question, "see: /reset\n\tone\n\ntwo!");
  EXPECT_EQ(saved.exchanges[1].question, "see: /reset\n\tone\n\ntwo!?");
  EXPECT_EQ(saved.exchanges[2].question, "/reset\nthe user");
  EXPECT_EQ(saved.exchanges[3].question, "one line");
  EXPECT_EQ(saved.exchanges[4].question, "hello");
}

TEST_F(ChatAtATerminal, TakesAPastedTextIntoABlock) {
  PseudoTerminal terminal = start({"-n", "1"});
  terminal.wait_for("> ");
  terminal.type("\"\"\"\r");
  terminal.wait_for(". ");
  terminal.type("\x1b[200~one\rtwo\x1b[201~\r");
  terminal.wait_for(". ");
  terminal.type("\"\"\"\r");
  wait_for_answer(terminal);
  terminal.type("\x1b[200~\"\"\"one\rtwo\"\"\"\x1b[201~\r");
  terminal.wait_for("[cut after 1 token");
  const Conversation saved = saved_and_left(terminal);
  ASSERT_EQ(saved.exchanges.size(), 2u);
  EXPECT_EQ(saved.exchanges[0].question, "one\ntwo");
  EXPECT_EQ(saved.exchanges[1].question, "one\ntwo");
}

TEST_F(ChatAtATerminal, ForgetsAMessageOfSeveralLinesAtCtrlC) {
  PseudoTerminal terminal = start({"-n", "1"});
  terminal.wait_for("> ");
  terminal.type("\"\"\"one\r");
  terminal.wait_for(". ");
  terminal.type("\x03");
  terminal.wait_for("> ");
  terminal.type("/undo\r");
  terminal.wait_for("nothing to take back");
}

TEST_F(ChatAtATerminal, ShowsNoControlCharactersOfTheModel) {
  PseudoTerminal terminal = start({"-n", "600", "--temperature", "3", "hello"});
  EXPECT_EQ(terminal.wait_for_end(), 0);
  // The only control characters may be ours: they erase a word that moves to the next line.
  const std::string shown =
      std::regex_replace(terminal.unread(), std::regex("\x1b\\[[0-9]+D\x1b\\[K"), "");
  EXPECT_GT(shown.size(), 600u);
  for (const char c : shown) {
    const auto byte = static_cast<unsigned char>(c);
    ASSERT_TRUE(byte >= 0x20 || c == '\n' || c == '\r' || c == '\t') << static_cast<int>(byte);
    ASSERT_NE(byte, 0x7f);
  }
}

}  // namespace
}  // namespace stagecraft
