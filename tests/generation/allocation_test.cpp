// After a session is constructed, a token needs no allocation.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>

#include "generation/generate.h"
#include "tests/support/random_model.h"

// Counts calls of malloc; operator new and Matrix both use it. If malloc cannot be replaced
// (sanitizers have their own, macOS has another way), the test is skipped.
namespace {

std::atomic<std::size_t> allocations{0};

}  // namespace

#if defined(__has_feature)
#define SANITIZED (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

#if defined(__GLIBC__) && !SANITIZED
extern "C" {
void* __libc_malloc(std::size_t size);
void* __libc_calloc(std::size_t count, std::size_t size);
void* __libc_realloc(void* memory, std::size_t size);

void* malloc(std::size_t size) noexcept {
  ++allocations;
  return __libc_malloc(size);
}
void* calloc(std::size_t count, std::size_t size) noexcept {
  ++allocations;
  return __libc_calloc(count, size);
}
void* realloc(void* memory, std::size_t size) noexcept {
  ++allocations;
  return __libc_realloc(memory, size);
}
}
constexpr bool kCounted = true;
#else
constexpr bool kCounted = false;
#endif

namespace stagecraft {
namespace {

using Kind = std::pair<BackendKind, KvType>;

class Allocations : public testing::TestWithParam<std::tuple<Kind, std::size_t, std::size_t>> {
 protected:
  void SetUp() override {
    if (!kCounted) GTEST_SKIP() << "malloc cannot be replaced here";
    write_random_model(folder_.path(), {.n_experts = std::get<2>(GetParam())});
  }

  // The number of allocations while this number of tokens is generated after a prompt.
  std::size_t while_generating(std::size_t max_tokens) const {
    Engine engine = open_engine();
    Session session(engine, 120);
    Random random(3);
    GenerationOptions options;
    options.max_tokens = max_tokens;
    options.sampler = {.temperature = 0.8f, .top_k = 40, .top_p = 0.9f};
    options.repeat_penalty = 1.1f;
    const std::vector<TokenId> prompt = {1, 2, 3, 4, 5};
    session.feed(prompt);
    std::size_t made = 0;
    const std::function<bool(TokenId)> count = [&made](TokenId) { return ++made != 0; };

    const std::size_t before = allocations;
    generate(session, options, random, count);
    const std::size_t after = allocations;
    EXPECT_EQ(made, max_tokens);
    return after - before;
  }

  Engine open_engine() const {
    const auto& [backend, kv_type] = std::get<0>(GetParam());
    return Engine::open(folder_.path(), {backend, n_threads(), kv_type});
  }
  std::size_t n_threads() const { return std::get<1>(GetParam()); }

  const TemporaryFolder folder_;
};

TEST_P(Allocations, CountsWhatItShould) {
  const std::size_t before = allocations;
  const Matrix<float> matrix(3, 3);
  const auto number = std::make_unique<int>(7);
  EXPECT_GT(allocations, before);
  EXPECT_EQ(*number, 7);
}

TEST_P(Allocations, DoNotGrowWithTheNumberOfTokens) {
  EXPECT_EQ(while_generating(100), while_generating(2));
}

TEST_P(Allocations, FeedingAPromptMakesNone) {
  Engine engine = open_engine();
  Session session(engine, 120);
  std::vector<TokenId> prompt(100);
  for (std::size_t i = 0; i < prompt.size(); ++i) prompt[i] = static_cast<TokenId>(3 * i);
  const std::size_t before = allocations;
  session.feed(prompt);  // more than one pass
  for (TokenId id = 0; id < 10; ++id) session.feed({&id, 1});
  session.truncate(50);
  session.feed(std::span(prompt).first(20));
  const std::size_t after = allocations;
  EXPECT_EQ(after - before, 0u);
}

INSTANTIATE_TEST_SUITE_P(LayersAndThreads, Allocations,
                         testing::Combine(testing::Values(Kind{BackendKind::Textbook, KvType::F32},
                                                          Kind{BackendKind::Cpu, KvType::F32},
                                                          Kind{BackendKind::Cpu, KvType::F16},
                                                          Kind{BackendKind::Cpu, KvType::BF16},
                                                          Kind{BackendKind::Cpu, KvType::Q8_0}),
                                          testing::Values(1, 3), testing::Values(0, 6)));

}  // namespace
}  // namespace stagecraft
