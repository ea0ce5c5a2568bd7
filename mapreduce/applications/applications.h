#pragma once

#include "fjord/mapreduce/application.h"

namespace fjord::mapreduce {

ApplicationInfo fieldstats_info();

}  // namespace fjord::mapreduce
