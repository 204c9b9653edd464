#include <algorithm>
#include <cstring>

#include "course/worker/calls.h"
#include "course/worker/chain.h"
#include "course/worker/forbidden_memory.h"
#include "operators/q8_0.h"

namespace stagecraft::stages {
namespace {

// Blocks between guard zones. They are sent as numbers: the bits of the scales, and every q. What
// still holds the pattern of new blocks was never written, and is sent as untouched_value(). A
// right answer has no such scale, which would be negative, and no block whose 32 q are all -91:
// the largest |q| of a block is 127, or 0.
class Blocks {
 public:
  explicit Blocks(std::size_t n) : blocks_(n + 2 * kGuard) {
    std::memset(static_cast<void*>(blocks_.data()), kPattern, bytes());
    forbid(blocks_.data(), kGuard * sizeof(BlockQ8_0));
    forbid(view().data() + n, kGuard * sizeof(BlockQ8_0));
  }
  ~Blocks() { allow(blocks_.data(), bytes()); }
  Blocks(const Blocks&) = delete;
  Blocks& operator=(const Blocks&) = delete;
  Blocks(Arguments& args, const std::string& name) : Blocks(args.vector(name + " scales").size()) {
    const auto scales = args.vector(name + " scales");
    const auto q = args.vector(name + " q");
    for (std::size_t i = 0; i < scales.size(); ++i) {
      view()[i].scale = static_cast<std::uint16_t>(scales[i]);
      for (std::size_t j = 0; j < BlockQ8_0::kSize; ++j) {
        view()[i].q[j] = static_cast<std::int8_t>(q[i * BlockQ8_0::kSize + j]);
      }
    }
  }

  std::span<BlockQ8_0> view() {
    return std::span(blocks_).subspan(kGuard, blocks_.size() - 2 * kGuard);
  }
  void show(Arguments& args) {
    std::vector<float> scales;
    std::vector<float> q;
    for (const BlockQ8_0& block : view()) {
      scales.push_back(is_pattern(&block.scale, sizeof(block.scale)) ? untouched_value()
                                                                     : block.scale);
      if (is_pattern(block.q, sizeof(block.q))) {
        q.insert(q.end(), BlockQ8_0::kSize, untouched_value());
      } else {
        q.insert(q.end(), std::begin(block.q), std::end(block.q));
      }
    }
    args.record("scales", std::span<const float>(scales));
    args.record("q", std::span<const float>(q));
    allow(blocks_.data(), bytes());
    if (is_changed(0)) args.tell_overrun("blocks", "before");
    if (is_changed(blocks_.size() - kGuard)) args.tell_overrun("blocks", "after");
  }

 private:
  static constexpr std::size_t kGuard = 4;  // 4 blocks have a multiple of 8 bytes
  static constexpr unsigned char kPattern = 0xa5;

  static bool is_pattern(const void* memory, std::size_t n) {
    const auto* first = static_cast<const unsigned char*>(memory);
    return std::all_of(first, first + n, [](unsigned char byte) { return byte == kPattern; });
  }
  bool is_changed(std::size_t guard) const {
    return !is_pattern(blocks_.data() + guard, kGuard * sizeof(BlockQ8_0));
  }
  std::size_t bytes() const { return blocks_.size() * sizeof(BlockQ8_0); }

  std::vector<BlockQ8_0> blocks_;
};

void call_quantize(Arguments& args) {
  const auto x = args.vector("x");
  Blocks blocks(x.size() / BlockQ8_0::kSize);
  quantize_q8_0(x, blocks.view());
  blocks.show(args);
}

void call_dequantize(Arguments& args) {
  Blocks blocks(args, "blocks");
  dequantize_q8_0(blocks.view(), args.out_vector("x", blocks.view().size() * BlockQ8_0::kSize));
}

// The dot products of the one row of a with each row of b.
void call_dot(Arguments& args) {
  Blocks a(args, "a");
  Blocks b(args, "b");
  const std::size_t n = a.view().size();
  std::vector<float> products;
  for (std::size_t first = 0; first + n <= b.view().size() && products.size() < args.size("rows");
       first += n) {
    products.push_back(dot_q8_0(a.view(), b.view().subspan(first, n)));
  }
  args.record("products", products);
}

void call_chain(Arguments& args) {
  Blocks weight(args, "b");
  run_chain_of_blocks(args, weight.view(), dot_q8_0);
}

const Callable kQuantizationCalls{{"quantize_q8_0", call_quantize},
                                  {"dequantize_q8_0", call_dequantize},
                                  {"dot_q8_0", call_dot},
                                  {"dot_q8_0, again and again", call_chain}};

}  // namespace

}  // namespace stagecraft::stages
