// Counts the calls of a student's functions and their time. Linked only into stagecraft_mine:
// course/cmake/count_calls.cmake compiles the student's files with -finstrument-functions, so that
// each of their functions calls these hooks at its beginning and its end. The rest of the program
// does not know of the hooks.
//
// STAGECRAFT_CALLS names a file made by course/mine/call_counts.py. It lists the functions to
// count. The counts are written to it while the program runs, so they are there even if the program
// crashes.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

extern "C" void __cyg_profile_func_enter(void* code, void* caller);
extern "C" void __cyg_profile_func_exit(void* code, void* caller);

namespace {

using Count = std::atomic<std::uint64_t>;
static_assert(Count::is_always_lock_free && sizeof(Count) == 8);

// The file: a Head, then one Function per function.
struct Head {
  std::uint64_t n_functions;
  Count inside;       // 1 + the index of the function that the main thread is in; 0: none
  Count nanoseconds;  // from the first call until the program ends
};
struct Function {
  std::int64_t offset;  // address of its code minus that of __cyg_profile_func_enter
  Count calls;          // of all threads
  Count nanoseconds;    // on the main thread, without the time in other functions of this list
};

Head* open_head() {
  const char* path = std::getenv("STAGECRAFT_CALLS");
  const int file = path != nullptr ? ::open(path, O_RDWR | O_CLOEXEC) : -1;
  if (file < 0) return nullptr;
  struct stat status = {};
  void* memory = MAP_FAILED;
  if (::fstat(file, &status) == 0 && status.st_size >= static_cast<off_t>(sizeof(Head))) {
    memory = ::mmap(nullptr, static_cast<std::size_t>(status.st_size), PROT_READ | PROT_WRITE,
                    MAP_SHARED, file, 0);
  }
  ::close(file);
  if (memory == MAP_FAILED) return nullptr;
  auto* head = static_cast<Head*>(memory);
  const std::size_t room = static_cast<std::size_t>(status.st_size) - sizeof(Head);
  return head->n_functions == room / sizeof(Function) ? head : nullptr;
}

// Measures the main thread only; the other threads do equal shares of the work.
class MainThread {
 public:
  explicit MainThread(Head* head) : head_(head) {}
  ~MainThread() {  // when the program ends
    if (last_ != Clock::time_point()) advance();
  }
  MainThread(const MainThread&) = delete;
  MainThread& operator=(const MainThread&) = delete;

  void enter(Function* function) {
    advance();
    if (depth_ == stack_.size()) return;
    stack_[depth_++] = function;
    show();
  }
  // Functions above this one on the stack were left by an exception; not every compiler calls the
  // hook then.
  void leave(Function* function) {
    advance();
    std::size_t depth = depth_;
    while (depth > 0 && stack_[depth - 1] != function) --depth;
    if (depth > 0) depth_ = depth - 1;
    show();
  }

 private:
  using Clock = std::chrono::steady_clock;

  void advance() {
    const auto now = Clock::now();
    if (last_ != Clock::time_point()) {
      const auto passed = static_cast<std::uint64_t>(
          std::chrono::duration_cast<std::chrono::nanoseconds>(now - last_).count());
      head_->nanoseconds += passed;
      if (depth_ > 0) stack_[depth_ - 1]->nanoseconds += passed;
    }
    last_ = now;
  }
  void show() {
    const auto* first = reinterpret_cast<Function*>(head_ + 1);
    head_->inside = depth_ == 0 ? 0 : static_cast<std::uint64_t>(stack_[depth_ - 1] - first) + 1;
  }

  Head* head_;
  Clock::time_point last_;
  std::array<Function*, 32> stack_ = {};
  std::size_t depth_ = 0;
};

// A student's static initialisers may call functions before these are set: they find nullptr, and
// the calls are not counted.
Head* head = nullptr;
thread_local MainThread* main_thread = nullptr;  // set only on the main thread

struct Begin {
  Begin() {
    head = open_head();
    if (head == nullptr) return;
    static MainThread the_main_thread(head);
    main_thread = &the_main_thread;
  }
} begin;

Function* find(void* code) {
  if (head == nullptr) return nullptr;
  const auto offset =
      static_cast<std::int64_t>(reinterpret_cast<std::intptr_t>(code) -
                                reinterpret_cast<std::intptr_t>(&__cyg_profile_func_enter));
  auto* function = reinterpret_cast<Function*>(head + 1);
  for (std::uint64_t i = 0; i < head->n_functions; ++i, ++function) {
    if (function->offset == offset) return function;
  }
  return nullptr;
}

}  // namespace

void __cyg_profile_func_enter(void* code, void* /*caller*/) {
  Function* function = find(code);
  if (function == nullptr) return;
  ++function->calls;
  if (main_thread != nullptr) main_thread->enter(function);
}

void __cyg_profile_func_exit(void* code, void* /*caller*/) {
  Function* function = find(code);
  if (function != nullptr && main_thread != nullptr) main_thread->leave(function);
}
