// How often a program calls a student's functions, and how long it is inside them. Linked into
// stagecraft_mine alone: course/cmake/count_calls.cmake has the student's files compiled with
// -finstrument-functions, so that each of their functions calls these hooks when it is entered and
// left; nothing else in the program knows of it.
//
// STAGECRAFT_CALLS names a file that course/mine/call_counts.py made: it says which functions
// count, and is counted in while the program runs, so that the counts are there also where the
// program crashes.
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

// The file: a head, then the functions.
struct Head {
  std::uint64_t n_functions;
  Count inside;       // 1 + the function that the main thread is in now; 0: none
  Count nanoseconds;  // from the first call to the end of the program
};
struct Function {
  std::int64_t offset;  // of its code from that of __cyg_profile_func_enter
  Count calls;          // on all threads
  Count nanoseconds;    // on the main thread, without what it spent in others of these functions
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

// What the main thread does; its parts of the work are as large as those of the others.
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
  // What stands above the function was left by an exception, of which not every compiler tells.
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

// Before these are made, a student's own initialisers may call; they find nullptr, and do not
// count.
Head* head = nullptr;
thread_local MainThread* main_thread = nullptr;  // on the main thread alone

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
