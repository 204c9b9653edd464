#include "inspection/peek.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "operators/softmax.h"
#include "tests/support/engines.h"
#include "tests/support/error_of.h"
#include "tests/support/random_model.h"
#include "tests/support/same_bits.h"

namespace stagecraft {
namespace {

class PeekTest : public testing::Test {
 protected:
  PeekTest() {
    write_random_model(folder_.path());
    for (std::size_t i = 0; i < 150; ++i) ids_.push_back(static_cast<TokenId>(i * 37 % 515));
  }

  // The probabilities after every token, and the weights of a head, all from one pass.
  Peek in_one_pass(HeadIndex head) const {
    Engine engine = walker_engine(folder_.path());
    const std::size_t n = ids_.size();
    const auto sequence = engine.make_sequence(n, n);
    Peek result{Matrix<float>(n, engine.plan().vocab_size), Matrix<float>(n, n)};
    const ProbeScope probe(
        engine, [&](int layer, std::string_view name, MatrixView<const float> value) {
          if (layer != static_cast<int>(head.layer) || name != "attn_probs") return;
          for (std::size_t i = 0; i < n; ++i) {
            std::ranges::copy(value.row(head.head * n + i), result.attention.view().row(i).begin());
          }
        });
    const Input input{sequence.get(), ids_, n};
    engine.forward({&input, 1}, result.next.view());
    for (std::size_t i = 0; i < n; ++i) {
      softmax(result.next.view().row(i), result.next.view().row(i));
    }
    return result;
  }

  static std::vector<float> numbers(const Matrix<float>& matrix, std::size_t first_row = 0) {
    return {matrix.data() + first_row * matrix.cols(),
            matrix.data() + matrix.rows() * matrix.cols()};
  }

  TemporaryFolder folder_;
  std::vector<TokenId> ids_;
};

TEST_F(PeekTest, ALongTextIsComputedInPassesAndHasTheSameBits) {
  const HeadIndex head{1, 2};
  const Peek expected = in_one_pass(head);
  for (const auto& open : {textbook_engine, walker_engine}) {
    Engine engine = open(folder_.path(), 1);
    for (const std::size_t shown : {1u, 23u, 150u}) {
      const Peek found = peek(engine, ids_, shown, &head);
      EXPECT_EQ(found.next.rows(), shown);
      EXPECT_TRUE(same_bits(numbers(found.next), numbers(expected.next, ids_.size() - shown)));
      EXPECT_TRUE(same_bits(numbers(found.attention), numbers(expected.attention)));
    }
    EXPECT_LT(engine.max_rows(), ids_.size());  // or one pass would need heads * tokens^2 numbers
  }
}

TEST_F(PeekTest, NamesTheWeightOfAHeadThatIsNoNumber) {
  const TemporaryFolder broken;
  write_random_model(broken.path(), {.gain = NAN});
  Engine engine = walker_engine(broken.path());
  const HeadIndex head{1, 2};
  EXPECT_EQ(error_of([&] { peek(engine, ids_, 1, &head); }),
            "the model computed the attention weight nan in layer 1, head 2, from position 0 to 0: "
            "the weights are broken, or the code that computes with them");
  EXPECT_EQ(error_of([&] { peek(engine, ids_, 1, nullptr); }),
            "the model computed the logit nan for token 0: the weights are broken, or the code "
            "that computes with them");
}

TEST_F(PeekTest, RefusesAttentionThatDoesNotFitIntoTheMemory) {
  Engine engine = walker_engine(folder_.path());
  const std::vector<TokenId> ids(std::size_t{1} << 21, 1);  // 2^44 bytes of attention weights
  const HeadIndex head{0, 0};
  const std::string error = error_of([&] { peek(engine, ids, 1, &head); });
  EXPECT_TRUE(error.starts_with("text: expected one that needs at most ")) << error;
  EXPECT_NE(error.find("found 2097152 tokens that need 17"), std::string::npos) << error;
}

}  // namespace
}  // namespace stagecraft
