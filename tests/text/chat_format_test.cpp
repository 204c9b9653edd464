#include "text/chat_format.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/json.h"
#include "tests/support/error_of.h"
#include "tests/support/jinja_values.h"
#include "tests/support/templated_folder.h"
#include "text/builtin_chat_templates.h"

namespace stagecraft {
namespace {

const std::string kTemplates = std::string(REPOSITORY) + "/reference/chat_templates/";
const std::string kDumps = std::string(TEST_DATA) + "/chat_templates/";

nlohmann::json load(const std::string& path) { return nlohmann::json::parse(read_file(path)); }

std::vector<Message> messages_of(const nlohmann::json& conversation) {
  std::vector<Message> messages;
  for (const auto& message : conversation["messages"]) {
    messages.push_back({message["role"], message["content"]});
  }
  return messages;
}

// ---- against transformers -----------------------------------------------------------------------

class ChatFormatOf : public testing::TestWithParam<std::string> {
 protected:
  static nlohmann::json config(const nlohmann::json& model) {
    nlohmann::json config = {{"chat_template", read_file(kTemplates + GetParam() + ".jinja")}};
    for (const char* token : {"bos_token", "eos_token"}) config[token] = model[token];
    return config;
  }

  nlohmann::json model_ = load(kDumps + GetParam() + ".json");
  nlohmann::ordered_json conversations_ =
      nlohmann::ordered_json::parse(read_file(kDumps + "conversations.json"));
  TemplatedFolder folder_{model_["tokenizer"], model_["added_tokens"], config(model_)};
  Tokenizer tokenizer_ = Tokenizer::open(folder_.path());
  ChatFormat format_ =
      ChatFormat::open(folder_.path(), tokenizer_, {.now = day_of_the_reference()});
};

TEST_P(ChatFormatOf, GivesTheIdsOfTransformersForEveryConversation) {
  std::size_t n = 0;
  for (const auto& test : model_["cases"]) {
    const auto& conversation = conversations_[test["conversation"].get<std::size_t>()];
    if (!conversation["plain"] || !test["opening"] || test.contains("refused")) continue;
    EXPECT_EQ(format_.tokens(messages_of(conversation)), test["ids"].get<std::vector<TokenId>>())
        << conversation.dump() << "\n"
        << tokenizer_.decode(format_.tokens(messages_of(conversation)));
    ++n;
  }
  EXPECT_GE(n, 3u);
}

TEST_P(ChatFormatOf, RendersTheTextOfTransformersWithToolsAndInAnyOrder) {
  const jinja::Template made(read_file(kTemplates + GetParam() + ".jinja"), "template");
  std::size_t refused = 0;
  for (const auto& test : model_["cases"]) {
    const auto& conversation = conversations_[test["conversation"].get<std::size_t>()];
    nlohmann::ordered_json variables = {
        {"messages", conversation["messages"]},
        {"tools", conversation.value("tools", nlohmann::ordered_json())},
        {"documents", nullptr},
        {"add_generation_prompt", test["opening"].get<bool>()}};
    for (const char* token : {"bos_token", "eos_token"}) {
      if (!model_[token].is_null()) variables[token] = model_[token].get<std::string>();
    }
    try {
      const MarkedText text = made.render(jinja_variables(variables), day_of_the_reference());
      ASSERT_TRUE(test.contains("text")) << conversation.dump() << text.bytes();
      EXPECT_EQ(text.bytes(), test["text"].get<std::string>());
      EXPECT_EQ(tokenizer_.encode(text, {}), test["ids"].get<std::vector<TokenId>>());
    } catch (const Error& error) {
      EXPECT_TRUE(test.contains("refused")) << conversation.dump() << error.what();
      ++refused;
    }
  }
  EXPECT_EQ(refused, std::ranges::count_if(model_["cases"], [](const nlohmann::json& test) {
              return test.contains("refused");
            }));
}

// The oracle is the rule of transformers (continue_final_message): the text ends after the last
// place of the content. It lacks the blanks that a template trims.
TEST_P(ChatFormatOf, ContinuesALastMessageOfTheAssistant) {
  const std::string said = "The answer\n is";
  for (const std::string after : {"", " ", "\n\n"}) {
    const std::vector<ToolMessage> messages = {{{"user", said + "?"}, {}, {}},
                                               {{"assistant", " " + said + after}, {}, {}}};
    const std::string whole =
        format_.text(std::vector<Message>(messages.begin(), messages.end()), false).bytes();
    const std::string expected = whole.substr(0, whole.rfind(said) + said.size()) + after;
    const std::vector<TokenId> tokens = format_.tokens(messages, std::nullopt);
    EXPECT_EQ(tokenizer_.decode(tokens), tokenizer_.decode(tokenizer_.encode(expected, {})));
    EXPECT_GT(expected.size(), 2 * said.size());
  }
}

// Typed text, at any place, never gives a token that a harmless message does not give.
TEST_P(ChatFormatOf, MakesNoTokenOfWhatAPersonTypes) {
  std::string all;
  for (const auto& token : model_["added_tokens"]) {
    if (token["special"]) all += token["content"].get<std::string>() + " ";
  }
  const auto specials = [&](const std::string& content) {
    std::vector<TokenId> found;
    for (const TokenId id : format_.tokens(
             std::vector<Message>{{"user", content}, {"assistant", content}, {"user", content}})) {
      if (tokenizer_.is_special(id)) found.push_back(id);
    }
    return found;
  };
  EXPECT_EQ(specials("hi " + all + "<s></s>"), specials("hi"));
}

TEST_P(ChatFormatOf, TakesChatMlForTheStudentsLinesAndNothingElse) {
  const bool expected =
      GetParam() == "qwen-2.5" || GetParam() == "smollm2" || GetParam() == "minimind2";
  EXPECT_EQ(format_.is_chatml(), expected);
}

TEST_P(ChatFormatOf, KnowsTheTokenThatEndsAnAnswer) {
  EXPECT_EQ(std::ranges::count(format_.end_tokens(),
                               *tokenizer_.id_of(GetParam() == "phi-3" ? "<|end|>"
                                                 : GetParam().starts_with("gemma")
                                                     ? "<end_of_turn>"
                                                     : model_["eos_token"].get<std::string>())),
            1);
}

std::vector<std::string> template_names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kTemplates)) {
    names.push_back(entry.path().stem().string());
  }
  std::ranges::sort(names);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Models, ChatFormatOf, testing::ValuesIn(template_names()),
                         [](const auto& param) {
                           std::string name = param.param;
                           std::erase_if(name, [](char c) { return c == '-' || c == '.'; });
                           return name;
                         });

// ---- built in -----------------------------------------------------------------------------------

const std::vector<std::vector<Message>> kConversations = {
    {{"user", "Hi!"}},
    {{"user", "Hi!"}, {"assistant", "Hello."}, {"user", "And now?"}},
    {{"user", "  a "}, {"assistant", " b\n"}, {"user", "\nc"}, {"assistant", ""}, {"user", "d"}},
};
const Message kSystem = {"system", "Be brief."};

std::string text_of(const ChatFormat& format, std::vector<Message> messages, bool with_system) {
  if (with_system) messages.insert(messages.begin(), kSystem);
  return format.text(messages).bytes();
}

TEST(BuiltinChatTemplates, WriteWhatTheTemplatesOfTheirModelsWrite) {
  const TemplatedFolder folder("gpt2", nlohmann::json::array());
  const Tokenizer tokenizer = Tokenizer::open(folder.path());
  for (const auto& [builtin, model, knows_system] : {std::tuple{"chatml", "smollm2", true},
                                                     {"llama2", "llama-2", true},
                                                     {"llama3", "llama-3", true},
                                                     {"phi3", "phi-3", true},
                                                     {"gemma", "gemma-3", true},
                                                     {"mistral", "mistral-v0.3", true}}) {
    const auto* known = find_builtin_chat_template(builtin);
    ASSERT_NE(known, nullptr);
    const ChatFormat ours = ChatFormat::open(folder.path(), tokenizer, {builtin});
    folder.write("tokenizer_config.json",
                 nlohmann::json{{"chat_template", read_file(kTemplates + model + ".jinja")},
                                {"bos_token", known->bos_token},
                                {"eos_token", known->eos_token}}
                     .dump());
    const ChatFormat theirs = ChatFormat::open(folder.path(), tokenizer);
    for (auto messages : kConversations) {
      if (std::string(builtin) == "mistral") {  // its template trims answers
        for (Message& message : messages) message.content = "x" + message.content + "y";
      }
      EXPECT_EQ(text_of(ours, messages, true), text_of(theirs, messages, true)) << builtin;
      if (std::string(builtin) == "chatml") continue;  // smollm2 has a default system prompt
      EXPECT_EQ(text_of(ours, messages, false), text_of(theirs, messages, false)) << builtin;
    }
  }
  EXPECT_EQ(
      text_of(ChatFormat::open(folder.path(), tokenizer, {"zephyr"}), kConversations[1], true),
      "<|system|>\nBe brief.</s>\n<|user|>\nHi!</s>\n<|assistant|>\nHello.</s>\n"
      "<|user|>\nAnd now?</s>\n<|assistant|>\n");
}

TEST(BuiltinChatTemplates, AreChosenByWhatTheVocabularyHolds) {
  const auto chosen = [](const std::vector<std::string>& tokens) {
    const TemplatedFolder folder("gpt2", TemplatedFolder::special(tokens));
    return ChatFormat::open(folder.path(), Tokenizer::open(folder.path())).name();
  };
  EXPECT_EQ(chosen({"<|im_start|>", "<|im_end|>"}), "chatml");
  EXPECT_EQ(chosen({"<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"}), "llama3");
  EXPECT_EQ(chosen({"<start_of_turn>", "<end_of_turn>"}), "gemma");
  EXPECT_EQ(chosen({"<|user|>", "<|assistant|>", "<|end|>"}), "phi3");
  EXPECT_EQ(chosen({"<|user|>", "<|assistant|>"}), "zephyr");
  EXPECT_EQ(chosen({"[INST]", "[/INST]"}), "mistral");
  EXPECT_THROW(chosen({"<s>", "</s>"}), Error);
}

// ---- where the template is found ----------------------------------------------------------------

class ChatFormatSource : public testing::Test {
 protected:
  std::string name_and_text(const std::string& chosen = "") {
    const ChatFormat format = ChatFormat::open(folder_.path(), tokenizer_, {chosen});
    return std::filesystem::path(format.name()).filename().string() + " " +
           format.text({{{"user", "Hi!"}}}).bytes();
  }
  void config(const nlohmann::json& json) { folder_.write("tokenizer_config.json", json.dump()); }

  TemplatedFolder folder_{"gpt2", TemplatedFolder::special({"<|im_start|>", "<|im_end|>"})};
  Tokenizer tokenizer_ = Tokenizer::open(folder_.path());
};

TEST_F(ChatFormatSource, IsTheFileThenTheConfigThenTheVocabulary) {
  EXPECT_EQ(name_and_text(), "chatml <|im_start|>user\nHi!<|im_end|>\n<|im_start|>assistant\n");
  config({{"chat_template", "config"}});
  EXPECT_EQ(name_and_text(), "tokenizer_config.json: chat_template config");
  folder_.write("chat_template.jinja", "file");
  EXPECT_EQ(name_and_text(), "chat_template.jinja file");
  EXPECT_EQ(name_and_text("zephyr"), "zephyr <|user|>\nHi!</s>\n<|assistant|>\n");
  folder_.write("mine.jinja", "mine");
  EXPECT_EQ(name_and_text((folder_.path() / "mine.jinja").string()), "mine.jinja mine");
}

TEST_F(ChatFormatSource, IsNotReadIfABuiltInOneIsChosen) {
  config({{"chat_template", 3}});
  EXPECT_THROW(name_and_text(), Error);
  EXPECT_EQ(name_and_text("zephyr"), "zephyr <|user|>\nHi!</s>\n<|assistant|>\n");
}

TEST_F(ChatFormatSource, IsNoEmptyFileAndNoJson) {
  for (const auto& [text, found] :
       {std::pair{"", "nothing"}, {R"({"chat_template": "x"})", "JSON"}}) {
    const std::string file = (folder_.path() / "mine").string();
    folder_.write("mine", text);
    EXPECT_EQ(error_of([&] { name_and_text(file); }),
              file + ": expected a template, found " + found);
  }
}

TEST_F(ChatFormatSource, IsNoLinkToNothing) {
  for (const char* name : {"chat_template.jinja", "tokenizer_config.json"}) {
    const auto path = folder_.path() / name;
    std::filesystem::create_symlink("nothing", path);
    EXPECT_EQ(error_of([&] { name_and_text(); }),
              path.string() + ": is a link to 'nothing', which does not exist");
    std::filesystem::remove(path);
  }
}

// A caller of the library has no option of the command line.
TEST_F(ChatFormatSource, IsNamedByTheCallersWords) {
  EXPECT_TRUE(
      error_of([&] { name_and_text("none"); }).starts_with("chat template: expected a file"));
}

TEST_F(ChatFormatSource, OfSeveralNamedOnesIsTheDefault) {
  config({{"chat_template",
           {{{"name", "tool_use"}, {"template", "tools"}},
            {{"name", "default"}, {"template", "d"}}}}});
  EXPECT_EQ(name_and_text(), "tokenizer_config.json: chat_template d");
}

// What a conversation without tools and one with tools become, and the form of calls.
std::string texts_and_form(const std::filesystem::path& path, const std::string& chosen = "") {
  const Tokenizer tokenizer = Tokenizer::open(path);
  ChatFormat format = ChatFormat::open(path, tokenizer, {.chosen = chosen});
  format.find_tool_form();
  const std::vector<ToolMessage> asked = {{{"user", "Hi!"}, {}, {}}};
  const Json tools(R"([{"type": "function", "function": {"name": "f"}}])", "tools");
  return fmt::format("{} | {} | {}", tokenizer.decode(format.tokens(asked, std::nullopt)),
                     tokenizer.decode(format.tokens(asked, tools.root())),
                     format.tool_form() == ToolForm::Tagged ? "tagged" : "none");
}

const std::string kUsesTools =
    "T{% for t in tools or [] %} {{ t.function.name "
    "}}{% endfor %}{% for m in messages %}"
    "{% for c in m.tool_calls %}<tool_call>\n{{ "
    "{'name': c.function.name, 'arguments': "
    "c.function.arguments}|tojson }}{% endfor %}{{ "
    "m.content }}<|im_start|>{% endfor %}";
const std::string kWithTools = "T fHi!<|im_start|>", kWithout = "THi!<|im_start|>";

TEST_F(ChatFormatSource, IsAnotherOneForConversationsWithTools) {
  const auto list = [](std::vector<std::pair<std::string, std::string>> named) {
    nlohmann::json all = nlohmann::json::array();
    for (const auto& [name, text] : named) all.push_back({{"name", name}, {"template", text}});
    return nlohmann::json{{"chat_template", all}};
  };
  config(list({{"default", "d"}, {"rag", "r"}, {"tool_use", kUsesTools}}));
  EXPECT_EQ(texts_and_form(folder_.path()), "d | " + kWithTools + " | tagged");
  EXPECT_EQ(texts_and_form(folder_.path(), "chatml").substr(0, 12), "<|im_start|>");
  folder_.write("mine.jinja", "mine");
  EXPECT_EQ(texts_and_form(folder_.path(), (folder_.path() / "mine.jinja").string()),
            "mine | mine | none");
  folder_.write("chat_template.jinja",
                "file");  // transformers reads no list beside it
  EXPECT_EQ(texts_and_form(folder_.path()), "file | file | none");
  std::filesystem::create_directory(folder_.path() / "additional_chat_templates");
  folder_.write("additional_chat_templates/tool_use.jinja", kUsesTools);
  EXPECT_EQ(texts_and_form(folder_.path()), "file | " + kWithTools + " | tagged");
}

TEST_F(ChatFormatSource, MayBeOnlyTheOneForConversationsWithTools) {
  config({{"chat_template",
           nlohmann::json::array({{{"name", "tool_use"}, {"template", kUsesTools}}})}});
  EXPECT_EQ(texts_and_form(folder_.path()), kWithout + " | " + kWithTools + " | tagged");
}

TEST_F(ChatFormatSource, EndsAnAnswerWhereTheTemplateForToolsEndsIt) {
  config({{"chat_template",
           {{{"name", "default"},
             {"template",
              "{% for m in messages %}{{ m.content }}<|im_end|>"
              "{% endfor %}"}},
            {{"name", "tool_use"}, {"template", kUsesTools}}}}});
  EXPECT_EQ(
      ChatFormat::open(folder_.path(), tokenizer_).end_tokens(),
      (std::vector<TokenId>{*tokenizer_.id_of("<|im_end|>"), *tokenizer_.id_of("<|im_start|>")}));
}

TEST_F(ChatFormatSource, MayReadAVariableOnlyWithTools) {
  config({{"chat_template",
           {{{"name", "default"}, {"template", "d"}},
            {{"name", "tool_use"}, {"template", "{{ style }}"}}}}});
  const ChatFormat format = ChatFormat::open(folder_.path(), tokenizer_);
  EXPECT_TRUE(format.reads("style"));
  EXPECT_FALSE(format.reads("other"));
}

TEST_F(ChatFormatSource, GivesTheTemplateTheModelsSpecialTokens) {
  config({{"chat_template", "{{ bos_token }}{{ eos_token }}{{ pad_token is defined }}"},
          {"bos_token", "<s>"},
          {"eos_token", {{"content", "</s>"}, {"special", true}}},
          {"pad_token", nullptr}});
  EXPECT_EQ(name_and_text(), "tokenizer_config.json: chat_template <s></s>False");
}

TEST_F(ChatFormatSource, EndsAnAnswerAtTheEosTokenThoughTheTemplateNeverWritesIt) {
  config({{"chat_template", "{{ messages[0].content }}"}, {"eos_token", "<|im_end|>"}});
  const ChatFormat format = ChatFormat::open(folder_.path(), tokenizer_);
  EXPECT_EQ(format.end_tokens(), (std::vector<TokenId>{*tokenizer_.id_of("<|im_end|>")}));
}

TEST_F(ChatFormatSource, EndsAnAnswerAtTheFirstSpecialTokenThatTheTemplateWritesAfterIt) {
  config({{"chat_template",
           "{% for m in messages %}{{ m.content }}!<|im_end|><|im_start|>{% endfor %}"}});
  const ChatFormat format = ChatFormat::open(folder_.path(), tokenizer_);
  EXPECT_EQ(format.end_tokens(), (std::vector<TokenId>{*tokenizer_.id_of("<|im_end|>")}));
}

// The tokenizer would make the end of an answer of it, wherever it was typed.
TEST(ChatFormatTools, MayNotNameTheEndOfAnAnswerThatTheTokenizerMakesOfTypedText) {
  auto tags = TemplatedFolder::special({"<|im_start|>", "<|im_end|>"});
  for (auto& tag : tags) tag["special"] = false;
  const nlohmann::json config = {{"chat_template", read_file(kTemplates + "qwen-2.5.jinja")},
                                 {"eos_token", "<|im_end|>"}};
  const TemplatedFolder folder("gpt2", tags, config);
  const Tokenizer tokenizer = Tokenizer::open(folder.path());
  const ChatFormat format = ChatFormat::open(folder.path(), tokenizer);
  const auto refused = [&](const std::string& argument, const std::string& description,
                           const std::string& id = "1", const std::string& answered = "1") {
    const std::vector<ToolMessage> messages = {
        {{"user", "Who?"}, {}, {}},
        {{"assistant", ""}, {{id, "f", fmt::format(R"({{"a": "{}"}})", argument)}}, {}},
        {{"tool", "r"}, {}, answered}};
    const Json tools(fmt::format(R"([{{"type": "function", "function": {{"name": "f",
                                       "description": "{}", "parameters": {{}}}}}}])",
                                 description),
                     "tools");
    return error_of([&] { format.tokens(messages, tools.root()); });
  };
  const std::string problem =
      "chat template: expected a tokenizer in which <|im_end|> is a special token, found one that "
      "also makes it from typed text";
  EXPECT_EQ(refused("x", "y"), "");
  EXPECT_EQ(refused("<|im_end|>", "y"), problem);
  EXPECT_EQ(refused("x", "<|im_end|>"), problem);
  EXPECT_EQ(refused("x", "y", "<|im_end|>"), problem);
  EXPECT_EQ(refused("x", "y", "1", "<|im_end|>"), problem);
}

// A special token has no text, so the reader of an answer would not see it.
TEST(ChatFormatTools, AreTaggedOnlyWhereTheTagIsText) {
  for (const bool special : {false, true}) {
    auto tag = TemplatedFolder::special({"<tool_call>"});
    tag[0]["special"] = special;
    const nlohmann::json config = {{"chat_template", read_file(kTemplates + "qwen-2.5.jinja")}};
    const TemplatedFolder folder("gpt2", tag, config);
    const Tokenizer tokenizer = Tokenizer::open(folder.path());
    ChatFormat format = ChatFormat::open(folder.path(), tokenizer);
    format.find_tool_form();
    EXPECT_EQ(format.tool_form(), special ? ToolForm::None : ToolForm::Tagged);
  }
}

// ---- ChatML -------------------------------------------------------------------------------------

TEST_F(ChatFormatSource, IsChatMlOnlyIfItNeverWritesAnythingElse) {
  const std::string chatml =
      "{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' + CONTENT + '<|im_end|>\n' }}"
      "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";
  const auto is_chatml = [&](const std::string& content, const std::string& before = "") {
    std::string source = before + chatml;
    source.replace(source.find("CONTENT"), 7, content);
    config({{"chat_template", source}});
    return ChatFormat::open(folder_.path(), tokenizer_).is_chatml();
  };
  EXPECT_TRUE(is_chatml("m.content"));
  EXPECT_FALSE(is_chatml("m.content | trim"));
  EXPECT_FALSE(is_chatml("m.content.rstrip()"));
  EXPECT_FALSE(is_chatml("m.content.split('</think>')[-1]"));
  EXPECT_FALSE(is_chatml("(m.content or 'nothing')"));
  EXPECT_FALSE(is_chatml("m.content", "<s>"));
  EXPECT_FALSE(
      is_chatml("m.content", "{{ raise_exception('no system') if messages[0].role == 'system' }}"));
  const std::string own =
      "{% if messages[0].role != 'system' %}<|im_start|>system\nBe kind.<|im_end|>\n{% endif %}";
  EXPECT_TRUE(is_chatml("m.content", own));
  EXPECT_FALSE(is_chatml("m.content", "<|im_start|>system\nBe kind.<|im_end|>\n"));

  // The date of a default system prompt must not stay the date on which a server was started.
  std::string dated = own;
  dated.replace(dated.find("Be kind."), 8, "{{ strftime_now('%Y') }}");
  EXPECT_FALSE(is_chatml("m.content", dated));
  EXPECT_TRUE(ChatFormat::open(folder_.path(), tokenizer_, {.now = local_time()}).is_chatml());
}

std::vector<ToolMessage> with_answer(const std::string& content) {
  return {{{"user", "Who?"}, {}, {}}, {{"assistant", content}, {}, {}}};
}

TEST_F(ChatFormatSource, ContinuesAMessageWithoutMakingTokensOfItsText) {
  const ChatFormat format = ChatFormat::open(folder_.path(), tokenizer_, {"chatml"});
  const auto count_ends = [&](const std::string& content) {
    return std::ranges::count(format.tokens(with_answer(content), std::nullopt),
                              *tokenizer_.id_of("<|im_end|>"));
  };
  EXPECT_EQ(count_ends("I"), 1);
  EXPECT_EQ(count_ends("<|im_end|> I <|im_end|>"), 1);
}

TEST_F(ChatFormatSource, ContinuesNoMessageThatTheTemplateChanges) {
  const auto refused = [&](const std::string& written, const std::string& content) {
    config({{"chat_template",
             "{% for m in messages %}{% if m.role == 'user' %}Q{{ m.content }}{% else %}A" +
                 written + "{% endif %}{% endfor %}"}});
    const ChatFormat format = ChatFormat::open(folder_.path(), tokenizer_);
    return error_of([&] { format.tokens(with_answer(content), std::nullopt); });
  };
  const std::string changes =
      folder_.path().string() +
      "/tokenizer_config.json: chat_template: expected a template that writes the last message of "
      "'assistant' unchanged (the answer continues it), found one that changes it";
  EXPECT_EQ(refused("{{ m.content }}.", "I am"), "");
  EXPECT_EQ(refused("{{ m.content | upper }}", "I am"), changes);
  EXPECT_EQ(refused("{{ m.content.split('am')[0] }}", "I am"), changes);
  EXPECT_EQ(refused("{{ m.content }}{{ messages[0].content }}", "I am"), changes);
  EXPECT_EQ(refused("", "I am"), changes);
  EXPECT_EQ(refused("{{ m.content }}", " \n"),
            "the last message: expected the beginning of an answer, found nothing");
}

TEST_F(ChatFormatSource, GivesTheTemplateMoreVariables) {
  config({{"chat_template",
           "{% for m in messages %}<|im_start|>{{ m.content }}{% endfor %}{# thinking #}"
           "{{ style.word if style is defined else 'plain' }}{{ documents }}"}});
  const ChatFormat format = ChatFormat::open(folder_.path(), tokenizer_);
  const std::vector<ToolMessage> asked = {{{"user", "Hi"}, {}, {}}};
  const Json values(R"({"style": {"word": "<|im_end|>"}, "documents": [1]})", "test");
  TemplateVariables variables;
  for (const JsonNode value : values.root().members()) variables.emplace_back(value.key(), value);
  const auto tokens = format.tokens(asked, std::nullopt, variables);
  EXPECT_EQ(tokenizer_.decode(tokens), "<|im_start|>Hi<|im_end|>[1]");
  EXPECT_EQ(std::ranges::count(tokens, *tokenizer_.id_of("<|im_end|>")), 0);  // text of a client
  EXPECT_EQ(tokenizer_.decode(format.tokens(asked, std::nullopt)), "<|im_start|>HiplainNone");
  EXPECT_TRUE(format.reads("style") && format.reads("documents"));
  EXPECT_FALSE(format.reads("styl") || format.reads("tyle") || format.reads(""));
  for (const char* other : {"word", "plain", "defined", "content", "thinking", "im_start"}) {
    EXPECT_FALSE(format.reads(other)) << other;  // words of the template, but no variables
  }
  EXPECT_TRUE(ChatFormat::sets_itself("messages") && ChatFormat::sets_itself("bos_token"));
  EXPECT_FALSE(ChatFormat::sets_itself("enable_thinking") || ChatFormat::sets_itself("documents"));
}

TEST_F(ChatFormatSource, GivesAChatMlModelItsOwnSystemPromptWhereNoneIsGiven) {
  config({{"chat_template",
           "{% for m in messages %}{% if loop.first and m.role != 'system' %}"
           "{{ '<|im_start|>system\nBe kind.<|im_end|>\n' }}{% endif %}"
           "{{ '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>\n' }}{% endfor %}"
           "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"}});
  const ChatFormat format = ChatFormat::open(folder_.path(), tokenizer_);
  ASSERT_TRUE(format.is_chatml());
  const auto written = [&](const std::vector<Message>& messages) {
    return tokenizer_.decode(format.tokens(messages));
  };
  const std::string rest = "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n";
  EXPECT_EQ(written({{"user", "Hi"}}), "<|im_start|>system\nBe kind.<|im_end|>\n" + rest);
  EXPECT_EQ(written({{"system", ""}, {"user", "Hi"}}), "<|im_start|>system\n<|im_end|>\n" + rest);
}

}  // namespace
}  // namespace stagecraft
