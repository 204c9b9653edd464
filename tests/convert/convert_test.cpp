// A converted model gives the same results as its source.
#include "convert/convert.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/safetensors_writer.h"
#include "formats/flm/file.h"
#include "formats/gguf/file.h"
#include "model/config_file.h"
#include "model/description.h"
#include "model/plan_text.h"
#include "tests/support/engines.h"
#include "tests/support/error_of.h"
#include "tests/support/logits.h"
#include "tests/support/same_bits.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tiny_chat_model.h"
#include "tests/support/tiny_models.h"
#include "text/chat_format.h"
#include "text/chat_template_source.h"
#include "text/tokenizer.h"

namespace stagecraft {
namespace {

const std::string kGguf = TEST_DATA "/gguf/";
const std::string kFormats = TEST_DATA "/formats/";

bool same_logits(const std::filesystem::path& a, const std::filesystem::path& b) {
  return same_bits(logits_of(textbook_engine(a)), logits_of(textbook_engine(b)));
}

class Convert : public testing::Test {
 protected:
  std::filesystem::path out(const std::string& name) const { return folder_.file(name); }

  static std::string refusal(Converted convert(const Conversion&), const Conversion& conversion) {
    return error_of([&] { convert(conversion); });
  }

  const TemporaryFolder folder_;
};

// Compares the files tensor by tensor. The gguf package wrote the files of the reference.
TEST_F(Convert, ToGgufGivesTheTensorsAndLogitsOfTheReference) {
  for (const std::string name :
       {"llama-gqa2", "llama-attention-bias", "llama-f16", "llama-bf16", "llama-rope-linear",
        "llama-tied-lm-head-only", "qwen2-window-off", "qwen3-qk-norm"}) {
    const auto path = out(name + ".gguf");
    convert_to_gguf({.model = kModels + name, .out = path, .with_tokenizer = false});
    EXPECT_TRUE(same_logits(path, kModels + name)) << name;
    if (name == "llama-f16" || name == "llama-bf16") continue;  // their norms became F32
    const GgufFile found(path), expected(kGguf + name + ".gguf");
    EXPECT_EQ(found.tensors().size(), expected.tensors().size()) << name;
    for (const StoredTensor& tensor : expected.tensors()) {
      const StoredTensor* same = found.find(tensor.name);
      ASSERT_NE(same, nullptr) << name << ": " << tensor.name;
      EXPECT_EQ(same->dtype, tensor.dtype) << tensor.name;
      EXPECT_EQ(same->shape, tensor.shape) << tensor.name;
      EXPECT_TRUE(std::ranges::equal(same->bytes, tensor.bytes)) << name << ": " << tensor.name;
    }
  }
}

// config.json says that the tables are one, but the file has two.
TEST_F(Convert, KeepsBothTablesOfATiedModelWhereTheyDiffer) {
  const std::string name = kModels + "llama-tied-both-differ";
  convert_to_gguf({.model = name, .out = out("a.gguf"), .with_tokenizer = false});
  EXPECT_TRUE(same_logits(out("a.gguf"), name));
  EXPECT_NE(GgufFile(out("a.gguf")).find("output.weight"), nullptr);
}

// FastLLM needs a tensor of this name.
TEST_F(Convert, ToFlmWritesTheOneTableOfATiedModelTwice) {
  convert_to_flm(
      {.model = kModels + "llama-tied-embed-only", .out = out("a.flm"), .with_tokenizer = false});
  const FlmFile file(out("a.flm"));
  const auto bytes_of = [&](std::string_view name) {
    const auto found = std::ranges::find(file.tensors(), name, &StoredTensor::name);
    return found == file.tensors().end() ? std::span<const std::byte>() : found->bytes;
  };
  EXPECT_FALSE(bytes_of("lm_head.weight").empty());
  EXPECT_TRUE(
      std::ranges::equal(bytes_of("lm_head.weight"), bytes_of("model.embed_tokens.weight")));
}

TEST_F(Convert, WritesMatricesInPartsAsWholeOnes) {
  const std::string gptq = kFormats + "quantized/gptq";
  convert_to_flm({.model = gptq, .out = out("a.flm"), .with_tokenizer = false});
  EXPECT_TRUE(same_logits(out("a.flm"), gptq));
  EXPECT_EQ(FlmFile(out("a.flm")).pairs().count("quantization_config"), 0u);
  convert_to_folder({.model = gptq, .out = out("a"), .with_tokenizer = false});
  EXPECT_TRUE(same_logits(out("a"), gptq));
  EXPECT_EQ(read_file(out("a/config.json")).find("quantization_config"), std::string::npos);
}

TEST_F(Convert, ToAFolderWritesOneTypeAndShortNumbers) {
  convert_to_folder({.model = kGguf + "llama-gqa2.gguf", .out = out("a"), .with_tokenizer = false});
  auto config = nlohmann::json::parse(read_file(out("a/config.json")));
  EXPECT_EQ(config["rms_norm_eps"].dump(), "1e-05");
  EXPECT_EQ(config["torch_dtype"], "float32");
  config["dtype"] = "float32";  // the newer name of torch_dtype
  write_file(out("a/config.json"), config.dump());
  convert_to_folder(
      {.model = out("a"), .out = out("b"), .dtype = DType::F16, .with_tokenizer = false});
  config = nlohmann::json::parse(read_file(out("b/config.json")));
  EXPECT_EQ(config["torch_dtype"], "float16");
  EXPECT_FALSE(config.contains("dtype"));
}

// The name of the unfinished folder has the id of the process, which may come again.
TEST_F(Convert, ToAFolderTakesNothingFromAConversionThatWasKilled) {
  const std::string left_over = fmt::format("{}.part-{}", out("a").string(), ::getpid());
  std::filesystem::create_directory(left_over);
  write_file(left_over + "/model-00002-of-00002.safetensors", "half");
  convert_to_folder({.model = kGguf + "llama-gqa2.gguf", .out = out("a"), .with_tokenizer = false});
  EXPECT_TRUE(std::filesystem::exists(out("a/model.safetensors")));
  EXPECT_FALSE(std::filesystem::exists(out("a/model-00002-of-00002.safetensors")));
}

TEST_F(Convert, SaysWhereNoTokenEndsAText) {
  const TinyChatModel model;
  const std::string file = model.folder().string() + "/config.json";
  auto config = nlohmann::json::parse(read_file(file));
  config.erase("eos_token_id");
  write_file(file, config.dump());
  const std::string note =
      "no token ends a text of this model: its texts go on until the context is full";
  const Conversion to{.model = model.folder(), .out = out("a"), .replace = true};
  for (const auto& convert : {convert_to_gguf, convert_to_flm, convert_to_folder}) {
    std::filesystem::remove_all(out("a"));
    const std::vector<std::string> notes = convert(to).notes;
    EXPECT_NE(std::ranges::find(notes, note), notes.end());
  }
}

TEST_F(Convert, TakesTheTemplateOfTheTokenizerWhereTheModelHasNone) {
  const TinyChatModel model, tokenizer;
  write_file(tokenizer.folder() / "chat_template.jinja", "the tokenizer's");
  Conversion to{.model = model.folder(), .out = out("a.gguf"), .tokenizer = tokenizer.folder()};
  convert_to_gguf(to);
  EXPECT_EQ(read_chat_template(out("a.gguf")).text, "the tokenizer's");
  write_file(model.folder() / "chat_template.jinja", "the model's");
  to.out = out("b.gguf");
  convert_to_gguf(to);
  EXPECT_EQ(read_chat_template(out("b.gguf")).text, "the model's");
}

TEST_F(Convert, ToFlmTakesTheTemplateOfTheTokenizerToo) {
  const TinyChatModel model, tokenizer;
  write_file(
      tokenizer.folder() / "chat_template.jinja",
      "{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>\n' "
      "}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}");
  convert_to_flm({.model = model.folder(), .out = out("a.flm"), .tokenizer = tokenizer.folder()});
  EXPECT_EQ(FlmFile(out("a.flm")).value("user_role"), "<|im_start|>user\n");
}

TEST_F(Convert, ToGgufWritesThreeTokensThatEndATextAndNoMore) {
  const TinyChatModel model;
  const std::string folder = model.folder().string(), file = folder + "/config.json";
  auto config = nlohmann::json::parse(read_file(file));
  config["eos_token_id"] = {1, 2, 3};
  write_file(file, config.dump());
  for (const bool with_tokenizer : {true, false}) {
    convert_to_gguf({.model = model.folder(),
                     .out = out("a.gguf"),
                     .with_tokenizer = with_tokenizer,
                     .replace = true});
    EXPECT_EQ(read_config(out("a.gguf")).eos_ids, (std::vector<TokenId>{1, 2, 3}));
  }
  config["eos_token_id"] = {1, 2, 3, 4};
  write_file(file, config.dump());
  EXPECT_EQ(refusal(convert_to_gguf,
                    {.model = model.folder(), .out = out("b.gguf"), .with_tokenizer = false}),
            folder +
                ": expected at most 3 tokens that end a text (GGUF has no names for more), found "
                "4");
}

TEST_F(Convert, ToGgufWritesTheSlowingDownOfRopeAsFactors) {
  const std::string name = "llama-rope-llama3";
  convert_to_gguf({.model = kModels + name, .out = out("a.gguf"), .with_tokenizer = false});
  const std::vector<float> found = logits_of(textbook_engine(out("a.gguf"))),
                           expected = logits_of(textbook_engine(kModels + name));
  for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 2e-5f);
}

// The factors come from fields of config.json, which a folder has again.
TEST_F(Convert, ToAFolderFindsTheFieldsOfRopeFactors) {
  const std::string name = "llama-rope-llama3";
  convert_to_gguf({.model = kModels + name, .out = out("a.gguf"), .with_tokenizer = false});
  for (const std::string& file : {out("a.gguf").string(), kGguf + name + ".gguf"}) {
    const Converted result = convert_to_folder(
        {.model = file, .out = out("b"), .with_tokenizer = false, .replace = true});
    EXPECT_EQ(result.notes.front(),
              "the factors of RoPE became \"rope_scaling\": llama3, factor 8, 64 positions");
    const std::string before = read_file(kModels + name + "/config.json");
    EXPECT_EQ(nlohmann::json::parse(read_file(out("b/config.json")))["rope_scaling"],
              nlohmann::json::parse(before)["rope_scaling"]);
  }
  EXPECT_EQ(logits_of(textbook_engine(out("b"))), logits_of(textbook_engine(kModels + name)));

  GgufFile changed(out("a.gguf"));
  std::string bytes = read_file(out("a.gguf"));
  const StoredTensor* factors = changed.find("rope_freqs.weight");
  const auto at = bytes.find(
      std::string(reinterpret_cast<const char*>(factors->bytes.data()), factors->bytes.size()));
  const float other[] = {1.0f, 2.0f, 3.0f};
  std::memcpy(&bytes[at], other, sizeof other);
  write_file(out("c.gguf"), bytes);
  EXPECT_EQ(refusal(convert_to_folder,
                    {.model = out("c.gguf"), .out = out("d"), .with_tokenizer = false}),
            out("c.gguf").string() +
                ": tensor 'rope_freqs.weight': config.json has no field for these RoPE factors");
}

// A folder's numbers are copied, and those of a GGUF file keep their bits.
TEST_F(Convert, ToAFolderKeepsALongRopeTheta) {
  for (const double theta : {283461213.0, 123456.789}) {
    const TinyChatModel model;
    const std::string file = model.folder().string() + "/config.json";
    auto config = nlohmann::json::parse(read_file(file));
    config["rope_theta"] = theta;
    write_file(file, config.dump());
    convert_to_folder({.model = model.folder(), .out = out("a"), .replace = true});
    EXPECT_EQ(nlohmann::json::parse(read_file(out("a/config.json")))["rope_theta"], theta);
    convert_to_gguf({.model = model.folder(), .out = out("b.gguf"), .replace = true});
    convert_to_folder({.model = out("b.gguf"), .out = out("c"), .replace = true});
    EXPECT_EQ(nlohmann::json::parse(read_file(out("c/config.json")))["rope_theta"],
              static_cast<double>(static_cast<float>(theta)));
  }
}

// A program that loads all weights as "torch_dtype" must not round any of them.
TEST_F(Convert, ToAFolderNamesTheWidestTypeOfItsMatrices) {
  const TinyChatModel model;
  convert_to_gguf({.model = model.folder(), .out = out("a.gguf"), .dtype = DType::BF16});
  convert_to_folder({.model = out("a.gguf"), .out = out("b")});
  EXPECT_EQ(nlohmann::json::parse(read_file(out("b/config.json")))["torch_dtype"], "bfloat16");
  convert_to_folder(
      {.model = kModels + "llama-mixed-dtypes", .out = out("c"), .with_tokenizer = false});
  EXPECT_EQ(nlohmann::json::parse(read_file(out("c/config.json")))["torch_dtype"], "float32");
}

TEST_F(Convert, FromGgufToGgufKeepsBlocksVocabularyAndTemplate) {
  convert_to_gguf({.model = kGguf + "whole.gguf", .out = out("a.gguf")});
  const GgufFile found(out("a.gguf")), expected(kGguf + "whole.gguf");
  for (const StoredTensor& tensor : expected.tensors()) {
    const StoredTensor* same = found.find(tensor.name);
    ASSERT_NE(same, nullptr) << tensor.name;
    EXPECT_EQ(same->dtype, tensor.dtype) << tensor.name;
    EXPECT_TRUE(std::ranges::equal(same->bytes, tensor.bytes)) << tensor.name;
  }
  EXPECT_EQ(found.metadata().text("tokenizer.chat_template"),
            expected.metadata().text("tokenizer.chat_template"));
  EXPECT_EQ(found.metadata().text("tokenizer.ggml.pre"), "smollm");
  EXPECT_EQ(read_config(out("a.gguf")).eos_ids, (std::vector<TokenId>{2, 0}));
}

TEST_F(Convert, FromGgufToGgufKeepsWhatTheFileSaysOfTheModel) {
  convert_to_gguf({.model = kModels + "llama-gqa2", .out = out("a.gguf"), .with_tokenizer = false});
  EXPECT_EQ(GgufFile(out("a.gguf")).metadata().text("general.name"), "llama-gqa2");
  std::string bytes = read_file(out("a.gguf"));
  bytes.replace(bytes.find("general.name"), 12, "general.tags");
  write_file(out("b.gguf"), bytes);
  convert_to_gguf({.model = out("b.gguf"), .out = out("c.gguf"), .with_tokenizer = false});
  const GgufFile converted(out("c.gguf"));
  EXPECT_EQ(converted.metadata().text("general.tags"), "llama-gqa2");
  EXPECT_EQ(converted.metadata().text("general.name"), "b");
  convert_to_gguf({.model = kGguf + "whole.gguf", .out = out("d.gguf"), .with_tokenizer = false});
  EXPECT_EQ(GgufFile(out("d.gguf")).metadata().text("general.name"),
            GgufFile(kGguf + "whole.gguf").metadata().text("general.name"));
}

TEST_F(Convert, QuantisesMatricesAloneAndSaysWhichCouldNotBe) {
  const Conversion conversion = {
      .model = kGguf + "whole-f32.gguf", .out = out("a.gguf"), .dtype = DType::Q8_0};
  EXPECT_TRUE(convert_to_gguf(conversion).notes.empty());
  const GgufFile file(out("a.gguf"));
  EXPECT_EQ(file.find("blk.0.ffn_down.weight")->dtype, DType::Q8_0);
  EXPECT_EQ(file.find("blk.0.ffn_norm.weight")->dtype, DType::F32);
  EXPECT_EQ(file.metadata().size("general.file_type", 0, 100), 7u);
  // Blocks that were Q8_0 before they became f32 come out the same.
  const GgufFile before(kGguf + "whole.gguf");
  for (const char* name : {"token_embd.weight", "blk.0.ffn_gate.weight"}) {
    EXPECT_TRUE(std::ranges::equal(file.find(name)->bytes, before.find(name)->bytes)) << name;
  }
  const Converted result = convert_to_gguf({.model = kModels + "llama-gqa2",
                                            .out = out("b.gguf"),
                                            .dtype = DType::Q4_0,
                                            .with_tokenizer = false});
  EXPECT_EQ(
      result.notes,
      (std::vector<std::string>{
          "16 matrices became F16: their row length is not a multiple of 32, the block size"}));
  EXPECT_EQ(GgufFile(out("b.gguf")).find("blk.0.ffn_up.weight")->dtype, DType::F16);
}

TEST_F(Convert, ToAFolderGivesTheSameLogitsAndTokens) {
  convert_to_folder({.model = kGguf + "whole.gguf", .out = out("whole")});
  EXPECT_TRUE(same_logits(out("whole"), kGguf + "whole.gguf"));
  const Tokenizer before = Tokenizer::open(kGguf + "whole.gguf");
  const Tokenizer after = Tokenizer::open(out("whole"));
  EXPECT_EQ(after.encode("<|im_start|>the cat  and", {}),
            before.encode("<|im_start|>the cat  and", {}));
  EXPECT_NE(read_file(out("whole/tokenizer_config.json")).find("<|im_start|>"), std::string::npos);

  convert_to_folder(
      {.model = kFormats + "llama2c-v0.bin", .out = out("l"), .with_tokenizer = false});
  EXPECT_TRUE(same_logits(out("l"), kModels + "llama-gqa2"));
}

// The template writes these tokens, whether or not they are put around every text.
TEST_F(Convert, KeepsTheSpecialTokensOfTheTemplate) {
  const TinyChatModel model;
  const std::string folder = model.folder().string() + "/";
  const std::string chat_template =
      "{{ bos_token }}{% for m in messages %}{{ m.content + eos_token }}{% endfor %}{{ pad_token "
      "}}";
  auto config = nlohmann::json::parse(read_file(folder + "config.json"));
  config["eos_token_id"] = {1, 2};
  write_file(folder + "config.json", config.dump());
  write_file(folder + "tokenizer_config.json", nlohmann::json{{"bos_token", "<|endoftext|>"},
                                                              {"eos_token", "<|im_end|>"},
                                                              {"pad_token", "<|im_start|>"},
                                                              {"chat_template", chat_template}}
                                                   .dump());
  convert_to_gguf({.model = model.folder(), .out = out("a.gguf")});
  convert_to_folder({.model = out("a.gguf"), .out = out("b")});
  EXPECT_FALSE(GgufFile(out("a.gguf")).metadata().flag_or("tokenizer.ggml.add_bos_token", true));
  EXPECT_EQ(read_config(out("a.gguf")).eos_ids, (std::vector<TokenId>{2, 1}));
  EXPECT_FALSE(GgufFile(out("a.gguf")).metadata().has("tokenizer.ggml.eom_token_id"));
  for (const auto& path : {model.folder(), out("a.gguf"), out("b")}) {
    const Tokenizer tokenizer = Tokenizer::open(path);
    const ChatFormat format = ChatFormat::open(path, tokenizer);
    EXPECT_EQ(format.text({{{"user", "Hi!"}}}).bytes(), "<|endoftext|>Hi!<|im_end|><|im_start|>")
        << path;
  }
}

TEST_F(Convert, TakesNoTokenAfterATextForOneBeforeIt) {
  const TinyChatModel model;
  const std::string file = model.folder().string() + "/tokenizer.json";
  auto tokenizer = nlohmann::json::parse(read_file(file));
  tokenizer["post_processor"] = nlohmann::json::parse(
      R"({"type": "TemplateProcessing",
          "single": [{"Sequence": {"id": "A", "type_id": 0}},
                     {"SpecialToken": {"id": "<|im_end|>", "type_id": 0}}],
          "pair": [],
          "special_tokens": {"<|im_end|>": {"id": "<|im_end|>", "ids": [2],
                                            "tokens": ["<|im_end|>"]}}})");
  write_file(file, tokenizer.dump());
  convert_to_gguf({.model = model.folder(), .out = out("a.gguf")});
  convert_to_folder({.model = out("a.gguf"), .out = out("b")});
  const auto config = nlohmann::json::parse(read_file(out("b/tokenizer_config.json")));
  EXPECT_FALSE(config.contains("bos_token"));
  EXPECT_EQ(config["eos_token"], "<|im_end|>");
}

TEST_F(Convert, ToAFolderNamesALinkToNothing) {
  const TinyChatModel model;
  std::filesystem::create_symlink("../blobs/7f3a", model.folder() / "special_tokens_map.json");
  EXPECT_NE(refusal(convert_to_folder, {.model = model.folder(), .out = out("a")})
                .find("special_tokens_map.json: is a link to '../blobs/7f3a'"),
            std::string::npos);
}

TEST_F(Convert, ToAFolderKeepsTheModelsTemplateWithAnotherTokenizer) {
  convert_to_folder({.model = kGguf + "whole.gguf", .out = out("tokenizer")});
  const std::string own = read_chat_template(kGguf + "whole.gguf").text;
  for (const std::string other : {"{}", R"({"chat_template": "another"})"}) {
    write_file(out("tokenizer/tokenizer_config.json"), other);
    convert_to_folder({.model = kGguf + "whole.gguf",
                       .out = out("a"),
                       .tokenizer = out("tokenizer"),
                       .replace = true});
    EXPECT_EQ(read_chat_template(out("a")).text, own);
  }
}

TEST_F(Convert, KeepsTheTemplateForConversationsWithTools) {
  const TinyChatModel model;
  const auto templates = [](const std::filesystem::path& path) {
    const ChatTemplateSource source = read_chat_template(path);
    return std::pair(source.text, source.tools_text);
  };
  const std::pair<std::string, std::string> expected = {"plain", "{{ tools }}"};
  write_file(model.folder().string() + "/chat_template.jinja", expected.first);
  std::filesystem::create_directory(model.folder() / "additional_chat_templates");
  write_file(model.folder().string() + "/additional_chat_templates/tool_use.jinja",
             expected.second);
  convert_to_gguf({.model = model.folder(), .out = out("a.gguf")});
  EXPECT_EQ(templates(out("a.gguf")), expected);
  convert_to_folder({.model = out("a.gguf"), .out = out("b")});
  EXPECT_EQ(templates(out("b")), expected);
  for (int i = 0; i < 2; ++i) {  // the second time, the folder is replaced
    convert_to_folder({.model = model.folder(), .out = out("c"), .replace = true});
    EXPECT_EQ(templates(out("c")), expected);
  }
  convert_to_folder({.model = out("a.gguf"), .out = out("d"), .tokenizer = out("c")});
  EXPECT_EQ(templates(out("d")), expected);
  const TinyChatModel plain;  // the template of the replaced model does not stay
  convert_to_folder({.model = plain.folder(), .out = out("c"), .replace = true});
  EXPECT_EQ(templates(out("c")).second, "");
  // A tokenizer from another folder does not bring its templates along.
  const std::string whole = kGguf + "whole.gguf";
  convert_to_folder({.model = whole, .out = out("e")});
  std::filesystem::create_directory(out("e/additional_chat_templates"));
  write_file(out("e/additional_chat_templates/tool_use.jinja"), "other");
  EXPECT_EQ(templates(out("e")).second, "other");
  convert_to_folder({.model = whole, .out = out("f"), .tokenizer = out("e")});
  EXPECT_EQ(templates(out("f")), std::pair(read_chat_template(whole).text, std::string()));
}

TEST_F(Convert, ToAFolderNamesTheClassOfTransformers) {
  std::size_t n = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kGguf)) {
    const std::string folder = kModels + entry.path().stem().string();
    if (entry.path().extension() != ".gguf" || !std::filesystem::exists(folder)) continue;
    const auto path = out("folder");
    std::filesystem::remove_all(path);
    try {
      convert_to_folder({.model = entry.path(), .out = path, .with_tokenizer = false});
    } catch (const Error&) {
      continue;  // a folder cannot hold it
    }
    const auto found = nlohmann::json::parse(read_file(path / "config.json"));
    const auto expected = nlohmann::json::parse(read_file(folder + "/config.json"));
    if (found["model_type"] != expected["model_type"]) continue;  // a ChatGLM is a GLM in GGUF
    EXPECT_EQ(found["architectures"], expected["architectures"]) << entry.path();
    ++n;
  }
  EXPECT_GT(n, 30u);
}

TEST_F(Convert, ToAFolderRoundsWhereAsked) {
  for (const DType dtype : {DType::F16, DType::BF16}) {
    const auto path = out(std::string(dtype_name(dtype)));
    convert_to_folder(
        {.model = kModels + "llama-gqa2", .out = path, .dtype = dtype, .with_tokenizer = false});
    const SafetensorsFile file(path / "model.safetensors");
    for (const StoredTensor& tensor : file.tensors()) EXPECT_EQ(tensor.dtype, dtype);
    EXPECT_EQ(file.metadata().at("format"), "pt");
    EXPECT_FALSE(same_logits(path, kModels + "llama-gqa2"));
  }
}

// A rounded router would send tokens to other experts.
TEST_F(Convert, ToAFolderNeverRoundsTheRoutersOfExperts) {
  const Conversion f16{.model = kModels + "qwen2-moe-shared",
                       .out = out("experts"),
                       .dtype = DType::F16,
                       .with_tokenizer = false};
  convert_to_folder(f16);
  const SafetensorsFile file(out("experts") / "model.safetensors");
  std::size_t routers = 0;
  for (const StoredTensor& tensor : file.tensors()) {
    const bool router = tensor.name.ends_with("mlp.gate.weight") ||
                        tensor.name.ends_with("shared_expert_gate.weight");
    EXPECT_EQ(tensor.dtype, router ? DType::F32 : DType::F16) << tensor.name;
    if (router) ++routers;
  }
  EXPECT_EQ(routers, 4u);
  EXPECT_NO_THROW(textbook_engine(out("experts")));
}

TEST_F(Convert, ToFlmAndBackGivesTheSameLogits) {
  for (const std::string name :
       {"llama-gqa2", "llama-tied-lm-head-only", "llama-rope-llama3", "qwen3-qk-norm"}) {
    convert_to_flm({.model = kModels + name, .out = out(name + ".flm"), .with_tokenizer = false});
    EXPECT_TRUE(same_logits(out(name + ".flm"), kModels + name)) << name;
  }
  convert_to_flm({.model = kGguf + "whole.gguf", .out = out("whole.flm")});
  const FlmFile file(out("whole.flm"));
  EXPECT_EQ(file.value("user_role"), "<|im_start|>user\n");
  EXPECT_EQ(file.value("bot_role"), "<|im_end|>\n<|im_start|>assistant\n");
  const Tokenizer tokenizer = Tokenizer::open(out("whole.flm"));
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("the cat", {})), "the cat");
  EXPECT_EQ(tokenizer.id_of("<|im_end|>"), 2);
  EXPECT_EQ(refusal(convert_to_gguf, {.model = out("whole.flm"), .out = out("x.gguf")}),
            out("whole.flm").string() +
                ": its vocabulary lacks the scores or merges that other programs need; name the "
                "model's own tokenizer: --tokenizer PATH, or use --without-tokenizer");
}

// The message is that of "./stage chat", and no half-written file is left.
TEST_F(Convert, RefusesABrokenChatTemplateAsAChatDoes) {
  const std::vector<std::array<std::string, 3>> broken = {
      {"chat_template.jinja", "", "chat_template.jinja: expected a template, found nothing"},
      {"chat_template.jinja", "caf\xe9",
       "chat_template.jinja: expected UTF-8, found the byte 0xe9 at offset 3"},
      {"tokenizer_config.json", R"({"chat_template": 3})",
       "tokenizer_config.json: 'chat_template': expected a string, found 3"},
      {"tokenizer_config.json", R"({"chat_template": [{"name": "rag", "template": "x"}]})",
       "tokenizer_config.json: 'chat_template': expected a template named 'default' or 'tool_use', "
       "found rag"},
      {"tokenizer_config.json", R"({"chat_template": [{"template": "x"}]})",
       "tokenizer_config.json: 'chat_template': expected a name and a template in each entry, "
       "found an object"}};
  for (const auto& [file, text, message] : broken) {
    const TinyChatModel model;
    const std::string folder = model.folder().string() + "/";
    write_file(folder + file, text);
    for (const auto& convert : {convert_to_gguf, convert_to_flm}) {
      EXPECT_EQ(refusal(convert, {.model = model.folder(), .out = out("x")}), folder + message);
      EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
      // The template belongs to the tokenizer: weights alone can be converted.
      convert({.model = model.folder(), .out = out("x"), .with_tokenizer = false});
      std::filesystem::remove(out("x"));
    }
  }
}

TEST_F(Convert, RefusesATemplateOfAGgufThatIsNoUtf8) {
  std::string gguf = read_file(kGguf + "whole.gguf");
  gguf[gguf.find("{% for m in messages")] = '\xff';
  write_file(out("broken.gguf"), gguf);
  for (const auto& convert : {convert_to_gguf, convert_to_folder, convert_to_flm}) {
    EXPECT_EQ(refusal(convert, {.model = out("broken.gguf"), .out = out("x")}),
              out("broken.gguf").string() +
                  ": tokenizer.chat_template: expected UTF-8, found the byte 0xff at offset 0");
    EXPECT_FALSE(std::filesystem::exists(out("x")));
  }
}

TEST_F(Convert, ToFlmKeepsWhatATemplateSaysIfItIsChatMl) {
  const TinyChatModel model;
  const auto converted = [&](const std::string& content, const std::string& before = "") {
    write_file(model.folder().string() + "/chat_template.jinja",
               before + "{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' + " + content +
                   " + '<|im_end|>\n' }}{% endfor %}"
                   "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}");
    return convert_to_flm({.model = model.folder(), .out = out("a.flm"), .replace = true}).notes;
  };
  EXPECT_EQ(converted("m.content").size(), 1u);  // the note about merges
  EXPECT_EQ(FlmFile(out("a.flm")).value("pre_prompt"), "");
  EXPECT_EQ(FlmFile(out("a.flm")).value("history_sep"), "<|im_end|>\n");
  converted("m.content",
            "{% if messages[0].role != 'system' %}<|im_start|>system\nBe brief.<|im_end|>\n"
            "{% endif %}");
  EXPECT_EQ(FlmFile(out("a.flm")).value("pre_prompt"), "<|im_start|>system\nBe brief.<|im_end|>\n");
  EXPECT_EQ(converted("m.content | trim").front(),
            "the chat template was left out: a .flm file can express only ChatML");
  EXPECT_EQ(FlmFile(out("a.flm")).value("user_role"), "");
}

// Every model that a folder can hold is the same model there: its steps, and the tokens that end a
// text.
TEST_F(Convert, ToFolderKeepsThePlanOfEveryModel) {
  std::size_t n_converted = 0;
  for (const std::string& folder : {kGguf, kModels}) {
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      const auto path = out("folder");
      std::filesystem::remove_all(path);
      try {
        convert_to_folder({.model = entry.path(), .out = path, .with_tokenizer = false});
      } catch (const Error& error) {
        EXPECT_TRUE(std::string(error.what()).starts_with(entry.path().string())) << error.what();
        continue;
      }
      const Plan source = describe_model(entry.path()).plan, found = describe_model(path).plan;
      std::string expected = plan_text(source);
      if (entry.path().filename() == "llama-rope-llama3.gguf") {  // the same, said in other words
        const std::string factors = "each frequency divided by a factor of its own";
        expected.replace(expected.find(factors), factors.size(), "llama3 x 8");
      }
      EXPECT_EQ(plan_text(found), expected) << entry.path();
      EXPECT_EQ(found.eos_ids, source.eos_ids) << entry.path();
      ++n_converted;
    }
  }
  EXPECT_GT(n_converted, 100u);
}

TEST_F(Convert, WithoutATokenizerKeepsTheTokensThatEndAText) {
  convert_to_folder({.model = kModels + "llama-gqa2", .out = out("a"), .with_tokenizer = false});
  write_file(out("a/generation_config.json"), R"({"eos_token_id": [3, 5]})");
  const std::vector<TokenId> ends = {3, 5};
  EXPECT_EQ(describe_model(out("a")).plan.eos_ids, ends);
  convert_to_gguf({.model = out("a"), .out = out("a.gguf"), .with_tokenizer = false});
  EXPECT_EQ(describe_model(out("a.gguf")).plan.eos_ids, ends);
  convert_to_flm({.model = out("a"), .out = out("a.flm"), .with_tokenizer = false});
  EXPECT_EQ(describe_model(out("a.flm")).plan.eos_ids, ends);
  convert_to_folder({.model = out("a.gguf"), .out = out("b"), .with_tokenizer = false});
  EXPECT_EQ(describe_model(out("b")).plan.eos_ids, ends);
}

TEST_F(Convert, RefusesWhatTheTargetHasNoWordsFor) {
  const auto gguf = [&](const std::string& name, std::optional<DType> dtype = {}) {
    return refusal(
        convert_to_gguf,
        {.model = kModels + name, .out = out("x.gguf"), .dtype = dtype, .with_tokenizer = false});
  };
  EXPECT_EQ(gguf("mistral-window4"),
            kModels +
                "mistral-window4: a sliding window of 4 tokens cannot be expressed in GGUF "
                "for mistral");
  EXPECT_EQ(gguf("llama-gelu"), kModels +
                                    "llama-gelu: 'hidden_act': expected 'silu' to write GGUF, "
                                    "found another activation function");
  EXPECT_EQ(gguf("qwen2-rope-yarn"), kModels +
                                         "qwen2-rope-yarn: rope type: expected default, linear or "
                                         "llama3 to write GGUF, found 'yarn'");
  EXPECT_EQ(gguf("mistral-no-window"), "");
  const std::string file = TEST_DATA "/gguf/qwen3_5-long-keys.gguf";
  EXPECT_EQ(
      refusal(convert_to_folder, {.model = file, .out = out("folder"), .with_tokenizer = false}),
      file +
          ": a folder cannot hold the tensor layout of qwen3_5_text in this file "
          "('stored_key_heads_in_turn')");
}

TEST_F(Convert, RefusesANumberThatDoesNotFitAndLeavesNothing) {
  convert_to_folder({.model = kModels + "llama-gqa2", .out = out("big"), .with_tokenizer = false});
  std::string file = read_file(out("big/model.safetensors"));
  const float big = 70'000.0f;
  std::memcpy(file.data() + file.size() - sizeof big, &big, sizeof big);  // in lm_head
  write_file(out("big/model.safetensors"), file);
  EXPECT_EQ(
      refusal(
          convert_to_folder,
          {.model = out("big"), .out = out("half"), .dtype = DType::F16, .with_tokenizer = false}),
      out("big/model.safetensors").string() +
          ": tensor 'lm_head.weight': element 1559: expected a number "
          "that F16 can hold, found 70000");
  EXPECT_FALSE(std::filesystem::exists(out("half")));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_.path()), {}), 1);
}

TEST_F(Convert, LeavesNothingWhereItIsInterrupted) {
  Conversion conversion = {
      .model = kModels + "llama-gqa2", .out = out("a"), .with_tokenizer = false};
  for (const auto convert : {convert_to_gguf, convert_to_flm, convert_to_folder}) {
    int pieces = 0;
    conversion.check = [&] {
      if (++pieces == 3) throw Error("enough");
    };
    EXPECT_EQ(refusal(convert, conversion), "enough");
    EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
  }
}

TEST_F(Convert, RefusesNormsThatAreNoNumbersWhereItQuantises) {
  convert_to_folder({.model = kModels + "llama-gqa2", .out = out("nan"), .with_tokenizer = false});
  const SafetensorsFile file(out("nan/model.safetensors"));
  std::vector<StoredTensor> tensors(file.tensors().begin(), file.tensors().end());
  const std::vector<float> norm(24, NAN);
  for (StoredTensor& tensor : tensors) {
    if (tensor.name == "model.norm.weight") tensor.bytes = std::as_bytes(std::span(norm));
  }
  write_safetensors(out("nan/model.safetensors"), tensors, {});
  EXPECT_EQ(refusal(convert_to_gguf, {.model = out("nan"),
                                      .out = out("a.gguf"),
                                      .dtype = DType::Q8_0,
                                      .with_tokenizer = false}),
            out("nan/model.safetensors").string() +
                ": tensor 'model.norm.weight': element 0: expected a finite number, found nan");
}

TEST_F(Convert, RefusesATokenizerOfMoreTokensThanRows) {
  write_file(out("tokenizer.json"),
             R"({"model": {"type": "BPE", "vocab": {"a": 0, "b": 70}, "merges": []}})");
  for (const auto convert : {convert_to_folder, convert_to_flm, convert_to_gguf}) {
    EXPECT_EQ(refusal(convert, {.model = kModels + "llama-gqa2",
                                .out = out("out"),
                                .tokenizer = out("tokenizer.json")}),
              out("tokenizer.json").string() + ": expected ids from 0 to 64 (the 65 rows of " +
                  kModels + "llama-gqa2), found 70");
  }
}

TEST_F(Convert, ToAFolderSaysWhatBecameF32) {
  const auto notes =
      convert_to_folder(
          {.model = kGguf + "four-bits.gguf", .out = out("a"), .with_tokenizer = false})
          .notes;
  ASSERT_FALSE(notes.empty());
  EXPECT_TRUE(notes.front().find(" became F32: a folder cannot hold ") != std::string::npos)
      << notes.front();
  EXPECT_TRUE(convert_to_folder({.model = kGguf + "four-bits.gguf",
                                 .out = out("b"),
                                 .dtype = DType::BF16,
                                 .with_tokenizer = false})
                  .notes.empty());
}

TEST_F(Convert, ReplacesOnlyWhereAsked) {
  const Conversion conversion = {
      .model = kModels + "llama-gqa2", .out = out("a.gguf"), .with_tokenizer = false};
  write_file(out("a.gguf"), "mine");
  EXPECT_EQ(refusal(convert_to_gguf, conversion),
            out("a.gguf").string() + ": already exists (--force replaces it)");
  EXPECT_EQ(read_file(out("a.gguf")), "mine");
  Conversion forced = conversion;
  forced.replace = true;
  convert_to_gguf(forced);
  EXPECT_TRUE(same_logits(out("a.gguf"), kModels + "llama-gqa2"));

  forced.out = out("folder");
  std::filesystem::create_directory(out("folder"));
  write_file(out("folder/notes.txt"), "mine");
  const std::string others[] = {"chat_template.jinja", "generation_config.json", "tokenizer.json",
                                "model.safetensors.index.json", "model-00001-of-00002.safetensors"};
  for (const std::string& other : others) write_file(out("folder/" + other), "another model's");
  convert_to_folder(forced);
  EXPECT_EQ(read_file(out("folder/notes.txt")), "mine");
  for (const std::string& other : others) {
    EXPECT_FALSE(std::filesystem::exists(out("folder/" + other))) << other;
  }
  EXPECT_TRUE(same_logits(out("folder"), kModels + "llama-gqa2"));

  // If a new file cannot be moved, the old model keeps its files.
  write_file(out("folder/tokenizer.json"), "another model's");
  std::filesystem::remove(out("folder/config.json"));
  std::filesystem::create_directories(out("folder/config.json/inside"));
  EXPECT_EQ(refusal(convert_to_folder, forced),
            out("folder").string() + ": cannot be written: Is a directory");
  EXPECT_EQ(read_file(out("folder/tokenizer.json")), "another model's");

  forced.out = out("a.gguf");
  EXPECT_EQ(refusal(convert_to_folder, forced),
            out("a.gguf").string() + ": expected a folder, found a regular file");
  forced.out = "/dev/null";
  EXPECT_EQ(refusal(convert_to_gguf, forced), "/dev/null: expected a regular file, found a device");

  forced.out = out("missing/a.gguf");
  EXPECT_EQ(refusal(convert_to_gguf, forced),
            out("missing/a.gguf").string() + ": cannot be written: No such file or directory");
}

}  // namespace
}  // namespace stagecraft
