BOT_NAME = "reader"
SPIDER_MODULES = ["reader.spiders"]
ROBOTSTXT_OBEY = True
LOG_LEVEL = "INFO"
