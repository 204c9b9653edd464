// Atomics, fences, asynchronous copies and the arithmetic of halves.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <utility>

#include "machine.h"

using namespace cuda_emulator;

// The program sets this before it calls an atomic function whose result it does not read
// (tools/cuda_check.py).
unsigned char cuda_emulator_discards = 0;

template <class T, class Function>
static T change(T* address, Address pc, Function function) {
  const auto begin = reinterpret_cast<Address>(address);
  if (current == nullptr)
    finding("host access", pc, 0, "host code calls an atomic function"), end_host_code();
  current->learns = std::exchange(cuda_emulator_discards, 0) == 0;
  const bool keeps =
      current->is_checked && is_there(begin, sizeof(T)) && *address == function(*address);
  access_for_caller(begin, sizeof(T), sizeof(T), keeps ? Kind::atomic_kept : Kind::atomic, pc);
  current->learns = true;
  const T old = *address;
  *address = function(old);
  return old;
}

#define ATOMIC(T, name, expression)                                     \
  T name(T* address, T value) {                                         \
    return change(address, PC, [=](T old) -> T { return expression; }); \
  }
#define IN_EACH_SCOPE(T, name, expression) \
  ATOMIC(T, name, expression)              \
  ATOMIC(T, name##_block, expression)      \
  ATOMIC(T, name##_system, expression)
CUDA_EMULATOR_ATOMICS(IN_EACH_SCOPE)

#define CAS(T, name)                                                                 \
  T name(T* address, T compare, T value) {                                           \
    confirm_read(reinterpret_cast<Address>(address), sizeof(T), compare);            \
    return change(address, PC, [=](T old) { return old == compare ? value : old; }); \
  }
#define CAS_IN_EACH_SCOPE(T) CAS(T, atomicCAS) CAS(T, atomicCAS_block) CAS(T, atomicCAS_system)
CUDA_EMULATOR_CAS_TYPES(CAS_IN_EACH_SCOPE)

void __threadfence() { fence(*current, true); }
void __threadfence_block() { fence(*current, false); }
void __threadfence_system() { fence(*current, true); }
void __nanosleep(unsigned) { yield(true); }
void __trap() {
  finding("trap", PC, 0, describe(*current) + " stops the kernel with __trap");
  abort_launch();
}

// ---- std::atomic and the compiler's own atomics: like the functions above, with a fence unless
// the order is relaxed

static Kind kind_of_load = Kind::volatile_read, kind_of_store = Kind::volatile_write;

template <class T, class Function>
static T compiler_atomic(volatile T* address, int order, Kind kind, Address pc, Function function) {
  auto* plain = const_cast<T*>(address);
  if (current != nullptr && order != __ATOMIC_RELAXED) fence(*current, true);
  access(reinterpret_cast<Address>(plain), sizeof(T), sizeof(T), kind, pc);
  const T old = *plain;
  if (kind != Kind::volatile_read) *plain = function(old);
  return old;
}

#define COMPILER_ATOMIC(T, bits, name, expression)                                                 \
  extern "C" T __tsan_atomic##bits##_##name(volatile T* a, T value, int order) {                   \
    return compiler_atomic<T>(a, order, Kind::atomic, PC, [=](T old) -> T { return expression; }); \
  }
#define COMPILER_ATOMICS(T, bits)                                                                 \
  extern "C" T __tsan_atomic##bits##_load(const volatile T* a, int order) {                       \
    return compiler_atomic<T>(const_cast<volatile T*>(a), order, kind_of_load, PC,                \
                              [](T x) { return x; });                                             \
  }                                                                                               \
  extern "C" void __tsan_atomic##bits##_store(volatile T* a, T value, int order) {                \
    compiler_atomic<T>(a, order, kind_of_store, PC, [=](T) { return value; });                    \
  }                                                                                               \
  COMPILER_ATOMIC(T, bits, exchange, (void(old), value))                                          \
  COMPILER_ATOMIC(T, bits, fetch_add, static_cast<T>(old + value))                                \
  COMPILER_ATOMIC(T, bits, fetch_sub, static_cast<T>(old - value))                                \
  COMPILER_ATOMIC(T, bits, fetch_and, static_cast<T>(old & value))                                \
  COMPILER_ATOMIC(T, bits, fetch_or, static_cast<T>(old | value))                                 \
  COMPILER_ATOMIC(T, bits, fetch_xor, static_cast<T>(old ^ value))                                \
  extern "C" int __tsan_atomic##bits##_compare_exchange_strong(volatile T* a, T* expected,        \
                                                               T value, int order, int) {         \
    const T wanted = *expected;                                                                   \
    *expected = compiler_atomic<T>(a, order, Kind::atomic, PC,                                    \
                                   [=](T old) { return old == wanted ? value : old; });           \
    return *expected == wanted;                                                                   \
  }                                                                                               \
  extern "C" int __tsan_atomic##bits##_compare_exchange_weak(volatile T* a, T* expected, T value, \
                                                             int order, int) {                    \
    const T wanted = *expected;                                                                   \
    *expected = compiler_atomic<T>(a, order, Kind::atomic, PC,                                    \
                                   [=](T old) { return old == wanted ? value : old; });           \
    return *expected == wanted;                                                                   \
  }
COMPILER_ATOMICS(unsigned char, 8)
COMPILER_ATOMICS(unsigned short, 16)
COMPILER_ATOMICS(unsigned, 32)
COMPILER_ATOMICS(unsigned long, 64)

extern "C" void __tsan_atomic_thread_fence(int) {
  if (current != nullptr) fence(*current, true);
}
extern "C" void __tsan_atomic_signal_fence(int) {}

// ---- cp.async

void __pipeline_memcpy_async(void* shared, const void* global, size_t bytes, size_t zeros) {
  const Address pc = PC;
  const auto to = reinterpret_cast<Address>(shared), from = reinterpret_cast<Address>(global);
  if ((bytes != 4 && bytes != 8 && bytes != 16) || zeros > bytes) {
    finding("misaligned", pc, 0,
            describe(*current) + " copies " + std::to_string(bytes) + " bytes, of them " +
                std::to_string(zeros) + " zeros; expected 4, 8 or 16 bytes");
    abort_launch();
  }
  const auto copied = static_cast<unsigned>(bytes - zeros);
  if (copied > 0) access_for_caller(from, copied, static_cast<unsigned>(bytes), Kind::read, pc);
  // The bytes arrive at some time between this call and the wait. So both count as a write.
  access_for_caller(to, bytes, static_cast<unsigned>(bytes), Kind::async_begin, pc);
  current->copies.push_back({static_cast<char*>(shared), static_cast<const char*>(global), copied,
                             static_cast<unsigned>(zeros), pc, false, 0});
}

void __pipeline_commit() {
  for (AsyncCopy& copy : current->copies) {
    if (!copy.committed) copy.group = current->copy_group;
    copy.committed = true;
  }
  ++current->copy_group;
}

void __pipeline_wait_prior(size_t groups) {
  Thread& thread = *current;
  std::vector<AsyncCopy> left, done;
  for (const AsyncCopy& copy : thread.copies)
    (copy.committed && copy.group + groups < thread.copy_group ? done : left).push_back(copy);
  thread.copies = std::move(left);
  for (const AsyncCopy& copy : done) {
    access_for_caller(reinterpret_cast<Address>(copy.to), copy.bytes + copy.zeros, 1,
                      Kind::async_end, copy.pc);
    std::memcpy(copy.to, copy.from, copy.bytes);
    std::memset(copy.to + copy.bytes, 0, copy.zeros);
  }
}

// ---- halves

namespace cuda_emulator {

float bf16_to_f32(std::uint16_t bits) { return std::bit_cast<float>(std::uint32_t{bits} << 16); }

std::uint16_t f32_to_bf16(float value) {
  auto bits = std::bit_cast<std::uint32_t>(value);
  if (std::isnan(value)) return 0x7fff;
  bits += 0x7fff + (bits >> 16 & 1);
  return static_cast<std::uint16_t>(bits >> 16);
}

float f16_to_f32(std::uint16_t bits) {
  const int exponent = bits >> 10 & 0x1f, mantissa = bits & 0x3ff;
  float value = exponent == 0    ? std::ldexp(static_cast<float>(mantissa), -24)
                : exponent == 31 ? (mantissa == 0 ? INFINITY : NAN)
                                 : std::ldexp(static_cast<float>(mantissa + 1024), exponent - 25);
  return bits >> 15 ? -value : value;
}

// From double, so that a fused operation is rounded only once.
static std::uint16_t f64_to_f16(double value) {
  const std::uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  if (std::isnan(value)) return 0x7fff;
  value = std::fabs(value);
  if (value >= 65520) return sign | 0x7c00;
  int exponent = value == 0 ? -14 : std::max(std::ilogb(value), -14);
  // In units of the last place; nearbyint rounds ties to even. If it rounds up to the next power of
  // two, the addition below carries into the exponent.
  const auto units = static_cast<int>(std::nearbyint(std::ldexp(value, 10 - exponent)));
  return static_cast<std::uint16_t>(sign | (((exponent + 14) << 10) + units));
}

std::uint16_t f32_to_f16(float value) { return f64_to_f16(value); }

std::uint16_t fma_f16(std::uint16_t a, std::uint16_t b, std::uint16_t c) {
  // Exact in double, unless the exponents are very different; then the lost bits do not change the
  // rounding to f16.
  return f64_to_f16(static_cast<double>(f16_to_f32(a)) * f16_to_f32(b) + f16_to_f32(c));
}

std::uint16_t fma_bf16(std::uint16_t a, std::uint16_t b, std::uint16_t c) {
  const double product = static_cast<double>(bf16_to_f32(a)) * bf16_to_f32(b);  // exact
  const double addend = bf16_to_f32(c);
  const double sum = product + addend;
  auto rounded = static_cast<float>(sum);
  if (!std::isfinite(rounded)) return f32_to_bf16(rounded);
  // A float that is not exact gets an odd last bit. So it is never halfway between two bf16, and
  // rounding it gives what one rounding of the exact sum gives.
  const double part = sum - product;
  const double lost = (product - (sum - part)) + (addend - part);  // Knuth's two-sum
  const double off = (sum - rounded) + lost;
  if (off != 0.0 && (std::bit_cast<std::uint32_t>(rounded) & 1) == 0) {
    rounded = std::nextafter(rounded, off > 0.0 ? INFINITY : -INFINITY);
  }
  return f32_to_bf16(rounded);
}

}  // namespace cuda_emulator
