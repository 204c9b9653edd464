// The two ways to run Llama's family on the textbook backend: the layers of the course, and the
// plan walked step by step.
#include "backends/textbook/plan_walker.h"
#include "checkpoint/model_source.h"

#include <gtest/gtest.h>

#include <cstring>

#include "backends/textbook/textbook_backend.h"
#include "inspection/trace_file.h"
#include "model/family.h"
#include "tests/support/engines.h"
#include "tests/support/tiny_models.h"

namespace stagecraft {
namespace {

namespace fs = std::filesystem;

struct Seen {
  int layer;
  std::string name;
  std::vector<float> values;
};

struct Shown {
  std::vector<Seen> seen;
  std::vector<float> logits;
};

std::vector<float> numbers(MatrixView<const float> value) {
  std::vector<float> all;
  for (std::size_t r = 0; r < value.rows(); ++r) {
    all.insert(all.end(), value.row(r).begin(), value.row(r).end());
  }
  return all;
}

// All results that a probe gets for a text in two passes, and the logits of its last two tokens.
Shown run(Backend& backend, std::span<const TokenId> ids, std::size_t vocab_size) {
  Shown result;
  const auto sequence = backend.make_sequence(ids.size(), 0);
  backend.step_results()->set_probe(
      [&](int layer, std::string_view name, MatrixView<const float> value) {
        result.seen.push_back({layer, std::string(name), numbers(value)});
      });
  Matrix<float> logits(2, vocab_size);
  const Input first{sequence.get(), ids.first(3), 0}, rest{sequence.get(), ids.subspan(3), 2};
  backend.forward({&first, 1}, logits.top_rows(0));
  backend.forward({&rest, 1}, logits.view());
  result.logits = numbers(logits.view());
  return result;
}

// Tensors of these files are copied when the files are opened. The walker uses f32 copies as they
// are, and converts others into memory of its own.
TEST(PlanWalker, KeepsOnlyTheCopiesOfTensorsThatItUses) {
  for (const auto& [name, kept] : {std::pair{"gguf/llama-gqa2.gguf", 6912u},
                                   {"gguf/gemma-tied.gguf", 0u},
                                   {"formats/quantized/gptq", 0u},
                                   {"formats/quantized/fp8-blocks", 12288u}}) {
    const ModelSource model = std::string(TEST_DATA "/") + name;
    const Checkpoint checkpoint = Checkpoint::open(model);
    EXPECT_GT(checkpoint.copied_bytes(), 0u) << name;
    load_weights(describe_model(model).plan, checkpoint);
    EXPECT_EQ(checkpoint.copied_bytes(), kept) << name;
  }
}

// The tiny models that the layers of the course can compute.
std::vector<std::string> models_of_the_course() {
  std::vector<std::string> names = tiny_model_names();
  std::erase_if(names, [](const std::string& name) {
    const bool other = name.find("-gelu") != std::string::npos ||
                       name.find("-yarn") != std::string::npos ||
                       name.find("-moe-") != std::string::npos;
    const auto begins = [&](const char* family) { return name.starts_with(family); };
    return other ||
           !(begins("llama-") || begins("mistral-") || begins("qwen2-") || begins("qwen3-"));
  });
  return names;
}

class Walked : public testing::TestWithParam<std::string> {};

// Compares only the results that the layers of the course report: the plan walker reports more.
TEST_P(Walked, GivesTheBitsOfTheCoursesLayersUnderTheSameNames) {
  const fs::path folder = fs::path(TEST_DATA "/models") / GetParam();
  const ModelDescription description = describe_model(folder);
  ASSERT_TRUE(description.config);
  const Checkpoint checkpoint = Checkpoint::open(folder);
  const std::vector<TokenId> ids = ids_of(TraceFile(folder / "trace.safetensors"));
  const auto course = make_textbook_backend(description, checkpoint, 1);
  const auto walked = make_walking_backend(description.plan, checkpoint, 2);
  const std::size_t vocab_size = description.plan.vocab_size;
  const auto expected = run(*course, ids, vocab_size), got = run(*walked, ids, vocab_size);
  ASSERT_EQ(expected.logits, got.logits);
  ASSERT_EQ(expected.seen.size(), 2 * (1 + 3 * description.plan.n_layers));
  auto next = got.seen.begin();
  for (const Seen& one : expected.seen) {
    next = std::find_if(next, got.seen.end(), [&](const Seen& other) {
      return other.layer == one.layer && other.name == one.name;
    });
    ASSERT_NE(next, got.seen.end()) << "layer " << one.layer << " " << one.name;
    ASSERT_EQ(next->values, one.values) << "layer " << one.layer << " " << one.name;
  }
}

INSTANTIATE_TEST_SUITE_P(EveryModel, Walked, testing::ValuesIn(models_of_the_course()),
                         [](const auto& parameter) {
                           std::string name = parameter.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

// The inputs of a pass are computed one after the other. If one is refused, no sequence may change.
TEST(TextbookBackend, ComputesSeveralSequencesOrNone) {
  Engine engine = textbook_engine(TEST_DATA "/models/llama-gqa2");
  const auto a = engine.make_sequence(8), b = engine.make_sequence(8);
  const std::vector<TokenId> ids = {1, 2, 3}, wrong = {65};
  const Input both[] = {{a.get(), ids, 1}, {b.get(), ids, 1}};
  Matrix<float> logits(2, 65);
  engine.forward(both, logits.view());
  EXPECT_TRUE(std::ranges::equal(logits.view().row(0), logits.view().row(1)));
  const Input refused[] = {{a.get(), ids, 1}, {b.get(), wrong, 1}};
  EXPECT_THROW(engine.forward(refused, logits.view()), Error);
  EXPECT_EQ(a->length(), 3u);
  EXPECT_EQ(b->length(), 3u);
}

}  // namespace
}  // namespace stagecraft
