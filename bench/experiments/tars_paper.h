#pragma once

// Figures of [CALB 2019], as rows of the tables that the experiment prints.

namespace fjord::affinity::paper {

inline constexpr const char* kTable1 =
    "| paper, AS-test | 8.54 M | 91.4 % | 65.0 % | 12.6 % | 0.10 % | 3779 |\n"
    "| paper, EU-test | 8.40 M | 91.5 % | 67.2 % | 16.2 % | 0.17 % | 2520 |\n"
    "| paper, NA-test | 7.42 M | 91.5 % | 67.2 % | 16.2 % | 0.16 % | 1919 |\n";

inline constexpr const char* kTable2 =
    "| paper, AS | 1 | 2.05 | 3.73 | 6.94 |\n"
    "| paper, EU | 1 | 1.73 | 3.50 | 6.83 |\n"
    "| paper, NA | 1 | 2.61 | 5.04 | 9.25 |\n";

inline constexpr const char* kTable3 =
    "| paper, AS | 2 | 10.39 | 8.56 | 6.75 | 8.16 | 6.63 | 4.58 | 0.647 |\n"
    "| paper, AS | 5 | 10.33 | 6.58 | 4.46 | 5.61 | 3.59 | 0.77 | 0.705 |\n"
    "| paper, EU | 2 | 10.12 | 8.18 | 7.54 | 7.91 | 7.44 | 4.92 | 0.515 |\n"
    "| paper, EU | 5 | 10.14 | 6.35 | 5.39 | 5.58 | 4.81 | 1.09 | 0.589 |\n"
    "| paper, NA | 2 | 10.00 | 7.96 | 6.66 | 7.70 | 6.59 | 4.30 | 0.598 |\n"
    "| paper, NA | 3 | 10.00 | 7.03 | 5.43 | 6.46 | 4.90 | 2.03 | 0.640 |\n"
    "| paper, NA | 4 | 9.97 | 6.51 | 4.37 | 5.64 | 3.77 | 1.09 | 0.698 |\n"
    "| paper, NA | 5 | 10.00 | 6.08 | 3.98 | 5.17 | 3.30 | 0.67 | 0.718 |\n";

inline constexpr const char* kTable4 =
    "| paper, AS | 1x | 1.157x | 0.930x | 0.957 | 0.528 | 0.610 |\n"
    "| paper, EU | 1.050x | 1x | 1.017x | 0.511 | 0.956 | 0.734 |\n"
    "| paper, NA | 1.128x | 1.161x | 1x | 0.588 | 0.722 | 0.961 |\n";

}  // namespace fjord::affinity::paper
