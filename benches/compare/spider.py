"""The same job for Scrapy: from each shop's front page along `a.next`, every product's four fields."""

from urllib.parse import urlsplit

import scrapy


class Shops(scrapy.Spider):
    name = "shops"

    def __init__(self, urls, **kwargs):
        super().__init__(**kwargs)
        self.start_urls = urls.split(",")

    async def start(self):
        for url in self.start_urls:
            yield self.ask(url, dont_filter=True)

    def ask(self, url, **kwargs):
        # Shops differ by their port alone, which Scrapy's slots don't look at.
        return scrapy.Request(url, meta={"download_slot": urlsplit(url).netloc}, **kwargs)

    def parse(self, response):
        if "/product/" in response.url:
            fields = {"title": "h1", "price": ".price", "stock": ".stock", "brand": ".brand"}
            item = {name: response.css(css + "::text").get() for name, css in fields.items()}
            yield {"url": response.url, **item}
        else:
            for link in response.css("a.card-link::attr(href), a.next::attr(href)").getall():
                yield self.ask(response.urljoin(link))
