"""Schemas that several tests of real processes use."""

ADS = """schema search {
  document ad_group {
    field name type string { header index: group }
    field advertiser type int { header }
  }
  document keyword {
    field text type string { header index: keyword }
    field match type string { header }
    field bid_micros type long { header }
  }
  document ad { field title type string { header index: ad } }
}"""
CAR = """document car {
  field make type string { header }
  field model type string { header }
  field year type int { header }
  field price type int { header }
  field transmission type string { header }
  field mileage type int { header }
  field fueltype type string { header }
  field tax type int { header }
  field mpg type double { header }
  field enginesize type double { header }
}
"""
