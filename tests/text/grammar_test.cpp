#include "text/grammar/grammar.h"

#include <bit>
#include <chrono>
#include <cstring>
#include <ctime>

#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/support/error_of.h"
#include "tests/support/grammar_texts.h"
#include "tests/support/tiny_chat_model.h"
#include "text/grammar/guided_text.h"

namespace stagecraft {
namespace {

struct Language {
  const char* gbnf;
  std::vector<std::string> in, out;
};

TEST(Gbnf, MeansTheTextsThatLlamaCppDocuments) {
  const Language cases[] = {
      {R"(root ::= "a" | "bc")", {"a", "bc"}, {"", "b", "abc", "aa"}},
      {R"(root ::= "a"* "b"+ "c"?)", {"b", "aab", "abbc"}, {"", "a", "ac", "bcc"}},
      {R"(root ::= "ab"{2} "c"{1,} "d"{0,2} "e"{,1})",
       {"ababc", "ababcccdd", "ababcde"},
       {"abc", "abab", "ababcddd", "ababcee"}},
      {"root ::= [a-cx-] [^a-c\\n] [\\]\\x41\\u00e9]",
       {"ax]", "-zA", "x\xf0\x9f\x98\x80\xc3\xa9"},
       {"aa]", "a\n]", "dx]", "ax\xe9"}},
      {"root ::= . .", {"ab", "\xe2\x82\xac\n"}, {"a", "abc", "\xe2\x82"}},
      {"root ::= (\n  \"a\" # first\n  | \"b\" |\n \"c\"\n) end\n\n# of it\nend ::=\n  \"!\"\n",
       {"a!", "b!", "c!"},
       {"!", "ab!"}},
      {R"x(root ::= "(" root ")" | "")x", {"", "()", "((()))"}, {"(", "(()", "())"}},
      {R"(root ::= ("a"? "b"?)*)", {"", "abab", "bba"}, {"c"}},
      {R"(root ::= (("a"*)*)+ "x")", {"x", "aaax"}, {"", "a"}},
      {"root ::= \"\\\"\\\\\\n\\t\"", {"\"\\\n\t"}, {"\""}},
      {R"(root ::= as as "b"
as ::= "a"*)",
       {"b", "aab"},
       {"a", "ba"}},
      {"\xef\xbb\xbfroot ::= \"a\"", {"a"}, {"", "\xef\xbb\xbf"}},  // behind a byte order mark
  };
  for (const auto& [gbnf, in, out] : cases) {
    const Grammar grammar = Grammar::parse(gbnf, "test");
    for (const std::string& text : in) EXPECT_TRUE(matches(grammar, text)) << gbnf << text;
    for (const std::string& text : out) EXPECT_FALSE(matches(grammar, text)) << gbnf << text;
  }
}

TEST(Gbnf, BeginsNoTextThatItCannotFinish) {
  const char* const rules =
      "root ::= \"A\" b | \"c\" d? | e* \"f\"\nb ::= \" and\" b\nd ::= [0-9] b\ne ::= \"g\" (b | "
      "\"h\")";
  ByteAutomaton automaton(std::make_shared<const Grammar>(Grammar::parse(rules, "test")));
  const auto lives = [&](std::string_view text) {
    return state_after(automaton, text) != ByteAutomaton::kDead;
  };
  for (const char* text : {"c", "f", "g", "gh", "ghghf"}) EXPECT_TRUE(lives(text)) << text;
  for (const char* text : {"A", "c1", "g ", "gha"}) EXPECT_FALSE(lives(text)) << text;
}

TEST(Gbnf, KnowsEveryCharacterOfARangeAndNoOther) {
  // Range ends at each border between UTF-8 lengths, and one inside.
  const char32_t ends[] = {0x7f,   0x80,   0x3ff,  0x7ff,   0x800,
                           0xd7ff, 0xe000, 0xffff, 0x10000, 0x10ffff};
  const auto utf8 = [](char32_t c) {
    std::string text;
    if (c < 0x80) return text + static_cast<char>(c);
    for (int shift = c < 0x800 ? 6 : c < 0x10000 ? 12 : 18, first = 1; shift >= 0; shift -= 6) {
      const int mark = !first ? 0x80 : shift == 6 ? 0xc0 : shift == 12 ? 0xe0 : 0xf0;
      text += static_cast<char>(mark | static_cast<int>(c >> shift & (first ? 0x1f : 0x3f)));
      first = 0;
    }
    return text;
  };
  for (const char32_t first : ends) {
    for (const char32_t last : ends) {
      if (last < first) continue;
      const std::string gbnf =
          fmt::format("root ::= [\\U{:08x}-\\U{:08x}]", static_cast<unsigned>(first),
                      static_cast<unsigned>(last));
      const Grammar grammar = Grammar::parse(gbnf, "test");
      for (const char32_t end : ends) {
        for (const char32_t c : {char32_t(end - 1), end, char32_t(end + 1)}) {
          if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000)) continue;
          EXPECT_EQ(matches(grammar, utf8(c)), first <= c && c <= last) << gbnf << unsigned{c};
        }
      }
    }
  }
}

std::string refused(const std::string& gbnf) {
  return error_of([&] { Grammar::parse(gbnf, "g"); });
}

TEST(Gbnf, SaysLineAndColumnOfWhatIsWrong) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "g: expected a rule 'root', found none"},
      {"a ::= \"x\"", "g: expected a rule 'root', found none"},
      {"root = \"x\"", "g: line 1, column 6: expected '::=', found '='"},
      {"root ::= \"x",
       "g: line 1, column 10: expected a '\"' at the end of this literal, found none"},
      {"root ::= [x\n]",
       "g: line 1, column 10: expected a ']' at the end of this character class, found none"},
      {"root ::= []", "g: line 1, column 10: this character class contains no character"},
      {"root ::= [z-a]", "g: line 1, column 11: expected a range in ascending order"},
      {"root ::= (\"a\"", "g: line 1, column 14: expected ')', found the end"},
      {"root ::= \"a\" )",
       "g: line 1, column 14: expected a symbol, '|' or the end of the line, found ')'"},
      {"root ::= a\n\nb ::= \"b\"", "g: line 1, column 10: rule 'a' is used, but not defined"},
      {"root ::= \"a\"\nroot ::= \"b\"", "g: line 2, column 1: rule 'root' is defined twice"},
      {"root ::= \"\\q\"",
       "g: line 1, column 11: expected an escape of \\n \\r \\t \\\\ \\\" \\[ \\] \\- \\^ \\x \\u "
       "\\U"},
      {"root ::= \"\\ud800\"", "g: line 1, column 11: this is not a Unicode character"},
      {"root ::= \"a\"{3,2}", "g: line 1, column 13: expected {m,n} with m not above n"},
      {"root ::= \"a\"{x}", "g: line 1, column 14: expected a number, found 'x'"},
      {"root ::= \"a\"{99999999999999999999}",
       "g: line 1, column 14: expected at most 10000 repetitions"},
      {"root ::= <think>",
       "g: line 1, column 10: tokens (<...>) are not supported: write their text"},
      {"root ::= \"x\" root",
       "g: line 1, column 1: expected rules that match a finite text, found endless recursion"},
      {"root ::= \"x\" e\ne ::= e \"+\" | \"1\"",
       "g: line 2, column 1: rule 'e' begins with itself (left recursion): write it as a "
       "repetition"},
      {"root ::= e\ne ::= (\"a\"? e \"b\")*",
       "g: line 2, column 1: rule 'e' begins with itself (left recursion): write it as a "
       "repetition"},
  };
  for (const auto& [gbnf, message] : cases) EXPECT_EQ(refused(gbnf), message);
  EXPECT_EQ(refused("root ::= \"\xff\""), "g: expected UTF-8, found the byte 0xff at offset 10");
}

TEST(Gbnf, RefusesGrammarsTooLargeToHold) {
  std::string many = "root ::=", copies = many;
  for (int i = 0; i < 30; ++i) many += " \"abc\"{10000}";
  EXPECT_NE(refused(many).find("too long"), std::string::npos);
  for (int i = 0; i < 30; ++i) copies += " \"a\"{0,10000}";
  EXPECT_NE(refused(copies).find("at most 200000 symbols"), std::string::npos);
  EXPECT_NE(refused("root ::= " + std::string(1000, '(')).find("nested groups"), std::string::npos);
  EXPECT_NE(refused(std::string(2 << 20, ' ')).find("bytes"), std::string::npos);
}

TEST(Gbnf, IsReadInTimeThatDoesNotExplodeWithTheNumberOfClasses) {
  constexpr std::string_view kUpper = "ABCDEFGHIJKLMNOPQRSTUVWXYZ", kDigits = "0123456789",
                             kLower = "abcdefghijklmnopqrstuvwxyz",
                             kOthers = "!#$%&()*+,./:;<=>?@_`|";
  std::string gbnf = "root ::=";
  for (const char a : kUpper)
    for (const char b : kLower)
      for (const char c : kDigits)
        for (const char d : kOthers) gbnf += {' ', '[', a, b, c, d, ']'};
  const std::clock_t start = std::clock();  // not wall-clock time: other programs may run
  const Grammar grammar = Grammar::parse(gbnf, "test");
  EXPECT_LT(std::clock() - start, 3 * CLOCKS_PER_SEC);
  EXPECT_EQ(grammar.n_classes(),
            kUpper.size() + kLower.size() + kDigits.size() + kOthers.size() + 1);
}

// After n letters there are 2^n ways to read the text.
TEST(ByteAutomaton, GivesUpWhereThereAreTooManyWaysToReadAText) {
  const Grammar grammar =
      Grammar::parse("root ::= \"a\" root \"x\" | \"a\" root \"y\" | \"a\"", "test");
  ByteAutomaton automaton(std::make_shared<const Grammar>(grammar));
  ByteAutomaton::State state = automaton.start();
  EXPECT_THROW(for (int i = 0; i < 100; ++i) state = automaton.next(state, 'a'), Error);
}

TEST(ByteAutomaton, GoesOnAsBeforeAfterForgettingOtherStates) {
  const Grammar grammar = Grammar::parse(
      "root ::= \"[\" (root (\",\" root)*)? \"]\" | [0-9]+ | \"\\\"\" [a-z]{0,20} \"\\\"\"",
      "test");
  const auto shared = std::make_shared<const Grammar>(grammar);
  std::mt19937 random(5);
  ByteAutomaton whole(shared), forgetful(shared);
  for (int round = 0; round < 50; ++round) {
    ByteAutomaton::State a = whole.start(), b = forgetful.start();
    const std::optional<std::string> text = random_text(whole, random, 300);
    if (!text) continue;
    for (const char byte : *text) {
      a = whole.next(a, static_cast<std::uint8_t>(byte));
      b = forgetful.next(b, static_cast<std::uint8_t>(byte));
      if (random() % 4 == 0) b = forgetful.keep_only(b);
      ASSERT_NE(b, ByteAutomaton::kDead);
      ASSERT_EQ(whole.accepts(a), forgetful.accepts(b));
      ASSERT_EQ(whole.is_at_end(a), forgetful.is_at_end(b));
    }
    EXPECT_TRUE(forgetful.accepts(b));
  }
}

// Two texts of the same form need only the states of the first.
TEST(ByteAutomaton, AStringOfAnyLengthTakesNoMoreStates) {
  ByteAutomaton automaton(std::make_shared<const Grammar>(
      Grammar::parse("root ::= \"<\" ([a-z] | \"<\" [a-z]* \">\")* \">\"", "test")));
  ByteAutomaton::State state = automaton.start();
  const auto read = [&](std::string_view text) {
    for (const char byte : text) state = automaton.next(state, static_cast<std::uint8_t>(byte));
  };
  read("<ab<cd>e");
  const std::size_t before = automaton.n_states();
  for (int i = 0; i < 1000; ++i) read("ab<cde>f<>");
  EXPECT_EQ(automaton.n_states(), before);
}

class GuidedTextTest : public testing::Test {
 protected:
  GuidedTextTest() : tokenizer_(Tokenizer::open(folder_.folder())) {}

  // The error of the first step that throws one, while 100 times "h" is written.
  std::optional<GrammarError> error_of_writing(GuidedText& text) const {
    try {
      for (int i = 0; i < 100; ++i) {
        (void)text.allowed();
        text.push(*tokenizer_.id_of("h"));
      }
    } catch (const GrammarError& error) {
      return error;
    }
    return std::nullopt;
  }

  TinyChatModel folder_;
  Tokenizer tokenizer_;
};

TEST_F(GuidedTextTest, AllowsExactlyTheTokensWhoseBytesGoOn) {
  const char* gbnf =
      "root ::= (\"h\" [a-m]{0,3} \" \" | \"l\"+ \"o\"?)+ [\\U00000080-\\U00010000]?";
  const Grammar grammar = Grammar::parse(gbnf, "test");
  GuidedText text(TokenGrammars(tokenizer_).parse(gbnf, "test"));
  ByteAutomaton automaton(std::make_shared<const Grammar>(grammar));
  ByteAutomaton::State state = automaton.start();
  std::mt19937 random(2);
  for (int step = 0; step < 60; ++step) {
    const auto allowed = text.allowed();
    std::vector<TokenId> possible;
    for (std::size_t id = 0; id < tokenizer_.vocab_size(); ++id) {
      const auto token = static_cast<TokenId>(id);
      const std::string bytes = tokenizer_.is_special(token) ? "" : tokenizer_.bytes_of(token);
      ByteAutomaton::State end = bytes.empty() ? ByteAutomaton::kDead : state;
      for (const char byte : bytes) end = automaton.next(end, static_cast<std::uint8_t>(byte));
      const bool is_allowed = (allowed[id / 64] >> (id % 64) & 1) != 0;
      ASSERT_EQ(is_allowed, end != ByteAutomaton::kDead) << step << " " << bytes;
      if (is_allowed) possible.push_back(token);
    }
    ASSERT_EQ(text.accepts(), automaton.accepts(state));
    if (possible.empty()) {
      EXPECT_TRUE(text.is_complete());
      break;
    }
    const TokenId token = possible[random() % possible.size()];
    text.push(token);
    for (const char byte : tokenizer_.bytes_of(token)) {
      state = automaton.next(state, static_cast<std::uint8_t>(byte));
    }
  }
}

TEST_F(GuidedTextTest, RefusesATokenThatIsNotAllowed) {
  GuidedText text(TokenGrammars(tokenizer_).parse("root ::= \"hello\"", "test"));
  const auto id = [&](const char* token) { return *tokenizer_.id_of(token); };
  EXPECT_THROW(text.push(id("x")), Error);
  EXPECT_THROW(text.push(id("<|im_end|>")), Error);
  EXPECT_THROW(text.push(1 << 20), Error);
  EXPECT_FALSE(text.is_complete());
  for (const char* token : {"h", "e", "l", "l", "o"}) text.push(id(token));
  EXPECT_TRUE(text.is_complete());
}

// Its text is not shown, so it must not stand for characters that the grammar asks for.
TEST_F(GuidedTextTest, AllowsNoSpecialTokenForItsText) {
  GuidedText text(TokenGrammars(tokenizer_).parse("root ::= .*", "test"));
  const auto allowed = text.allowed();
  const auto is_allowed = [&](const char* token) {
    const auto id = static_cast<std::size_t>(tokenizer_.id_of(token).value());
    return (allowed[id / 64] >> (id % 64) & 1) != 0;
  };
  EXPECT_TRUE(is_allowed("h") && is_allowed("<|"));
  EXPECT_FALSE(is_allowed("<|im_end|>"));
  EXPECT_THROW(text.push(*tokenizer_.id_of("<|im_end|>")), Error);
}

TEST_F(GuidedTextTest, AllowsAllOfManyTokensWithTheSameText) {
  constexpr int kMany = 1 << 16;
  nlohmann::json vocabulary;
  for (int id = 0; id < kMany; ++id) {  // axxyxy: the decoder drops x and y
    std::string token = "a";
    for (int bit = 0; bit < 16; ++bit) token += (id >> bit & 1) != 0 ? 'x' : 'y';
    vocabulary[token] = id;
  }
  const auto drop = [](const char* letter) {
    return nlohmann::json{{"type", "Replace"}, {"pattern", {{"String", letter}}}, {"content", ""}};
  };
  const nlohmann::json description = {
      {"model", {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", nlohmann::json::array()}}},
      {"decoder", {{"type", "Sequence"}, {"decoders", {drop("x"), drop("y")}}}}};
  const Tokenizer tokenizer = Tokenizer::parse(description.dump(), "tokenizer");
  GuidedText text(TokenGrammars(tokenizer).parse("root ::= \"a\"", "test"));
  int n_allowed = 0;
  for (const std::uint64_t word : text.allowed()) n_allowed += std::popcount(word);
  EXPECT_EQ(n_allowed, kMany);
}

TEST_F(GuidedTextTest, SaysWhereNoTokenSpellsWhatTheGrammarAsksFor) {
  const Tokenizer only_a = Tokenizer::parse(
      R"({"decoder": {"type": "Fuse"}, "model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}})",
      "tokenizer");
  GuidedText text(TokenGrammars(only_a).parse("root ::= \"ab\"", "file"));
  (void)text.allowed();
  text.push(0);
  EXPECT_EQ(error_of([&] { (void)text.allowed(); }),
            "file: no token of the vocabulary can continue the text");
}

TEST_F(GuidedTextTest, AHostileGrammarEndsInAnErrorInBoundedTime) {
  // Each beginning leads to a new state: the text must be repeated in reverse order.
  std::string gbnf = "root ::= \"\"";
  for (int byte = 0x21; byte < 0x7f; ++byte) {
    gbnf += fmt::format(" | \"\\x{:02x}\" root \"\\x{:02x}\"", byte, byte);
  }
  GuidedText mirrored(TokenGrammars(tokenizer_).parse(gbnf, "test"));
  for (int i = 0; i < 50; ++i) {
    (void)mirrored.allowed();
    mirrored.push(*tokenizer_.id_of("h"));
  }
  GuidedText ambiguous(TokenGrammars(tokenizer_)
                           .parse("root ::= \"h\" root \"x\" | \"h\" root \"y\" | \"h\"", "file"));
  const std::optional<GrammarError> error = error_of_writing(ambiguous);
  ASSERT_TRUE(error);
  EXPECT_STREQ(error->what(),
               "file: too large or too ambiguous: expected at most 300000 steps per token, found "
               "more");
  EXPECT_EQ("file: " + error->problem(), error->what());
}

TEST_F(GuidedTextTest, TheTimeForALargeGrammarIsBounded) {
  const auto begin = std::chrono::steady_clock::now();
  // Each of the first rules leads to all of the others.
  std::string rules = "root ::= b";
  for (int i = 1; i < 20'000; ++i) rules += "|b";
  rules += "\nb ::= \"a\"";
  for (int i = 1; i < 20'000; ++i) rules += "|\"a\"";
  EXPECT_THROW(GuidedText(TokenGrammars(tokenizer_).parse(rules, "file")), GrammarError);
  // Whether `root` may be empty is known only after all other rules.
  std::string empty = "root ::= \"h\"", others;
  for (int i = 0; i < 30'000; ++i) {
    empty += fmt::format("|c{} \"x\"", i);
    others += fmt::format("\nc{} ::= \"\"", i);
  }
  for (const std::string& gbnf :
       {empty + others, "root ::= top" + others + "\ntop " + empty.substr(std::strlen("root "))}) {
    GuidedText many(TokenGrammars(tokenizer_).parse(gbnf, "file"));
    const auto id = static_cast<std::size_t>(*tokenizer_.id_of("h"));
    EXPECT_EQ(many.allowed()[id / 64] >> id % 64 & 1, 1u);
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
}

// Each token opens every rule again, and no step is too large.
TEST_F(GuidedTextTest, AGrammarThatOpensRulesWithoutEndEndsInAnError) {
  std::string gbnf = "root ::= r0", rules;
  for (int i = 0; i < 4000; ++i) {
    if (i > 0) gbnf += fmt::format(" | r{}", i);
    rules += fmt::format("\nr{} ::= \"h\" ((((r{} \"b\") \"b\") \"b\") \"b\") | \"c\"", i, i);
  }
  GuidedText text(TokenGrammars(tokenizer_).parse(gbnf + rules, "file"));
  const std::optional<GrammarError> error = error_of_writing(text);
  ASSERT_TRUE(error);
  EXPECT_STREQ(error->what(),
               "file: too ambiguous: expected at most 1000000 open rules in all readings of the "
               "text, found more");
}

TEST_F(GuidedTextTest, AGrammarWithoutABeginningIsRefusedAtOnce) {
  // Any of the `b` may be the first that is not empty, so there are too many ways to begin.
  std::string gbnf = "root ::= c{400}\nc ::= b{1000}\nb ::= a?\na ::= [a-z]\n";
  EXPECT_THROW(TokenGrammars(tokenizer_).parse(gbnf, "test"), GrammarError);
}

}  // namespace
}  // namespace stagecraft
