BOT_NAME = "catalogue"
SPIDER_MODULES = ["catalogue.spiders"]
ROBOTSTXT_OBEY = True
LOG_LEVEL = "INFO"
