#include "fjord/common/random.h"

#include <bit>
#include <cerrno>
#include <sys/random.h>

#include "fjord/common/check.h"

namespace fjord {

namespace {

std::uint64_t splitmix64(std::uint64_t& state) {
  state += 0x9e3779b97f4a7c15;
  std::uint64_t z = state;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

}  // namespace

Random::Random(std::uint64_t seed) {
  for (std::uint64_t& word : state_) word = splitmix64(seed);
}

Random Random::from_system() {
  std::uint64_t seed = 0;
  ssize_t got;
  do {
    got = ::getrandom(&seed, sizeof(seed), 0);
  } while (got < 0 && errno == EINTR);
  FJORD_CHECK(got == static_cast<ssize_t>(sizeof(seed)));  // the system never truncates requests of up to 256 bytes
  return Random(seed);
}

std::uint64_t Random::next() {
  const std::uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
  const std::uint64_t t = state_[1] << 17;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= t;
  state_[3] = std::rotl(state_[3], 45);
  return result;
}

std::uint64_t Random::below(std::uint64_t bound) {
  FJORD_CHECK(bound > 0);
  // Maps a random number to [0, bound) by the high word of a product. Draws again if the low word is among the few that
  // would make some results more likely.
  __extension__ using Wide = unsigned __int128;
  Wide product = static_cast<Wide>(next()) * bound;
  if (static_cast<std::uint64_t>(product) < bound) {
    const std::uint64_t threshold = (0 - bound) % bound;
    while (static_cast<std::uint64_t>(product) < threshold) product = static_cast<Wide>(next()) * bound;
  }
  return static_cast<std::uint64_t>(product >> 64);
}

double Random::uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }

}  // namespace fjord
